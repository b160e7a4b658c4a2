"""Import the public names of a package at their first use: most of them need PyCUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a ``__getattr__`` (PEP 562) that imports the names of a package at their first use.

    Args:
        package: ``__name__`` of the package.
        modules: Full name of the module that defines each name.
    """

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return load
