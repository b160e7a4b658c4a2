"""Import the names of a package at their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` (PEP 562) for a package that imports names from other modules.

    Args:
        package: ``__name__`` of the package.
        modules: Full name of the module of each name.

    Example:
        >>> __getattr__ = lazy_names(__name__, {"Controller": "spearmint.controller.controller"})
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
