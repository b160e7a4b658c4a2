"""Custom classes, by ``package.module:Class`` or by an entry point of an installed package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from spearmint.errors import InputError, did_you_mean


def entry_point_classes(group: str) -> dict[str, str]:
    """Return ``package.module:Class`` by the name of each entry point of ``group``."""
    from importlib.metadata import entry_points  # slower to import than --help is

    found = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: f"{point.module}:{point.attr}" for point in found}


def is_class_path(name: str) -> bool:
    """Return whether ``name`` has the form ``package.module:Class``."""
    return ":" in name


def load_class(path: str) -> Any:
    """Import ``package.module:Class``; the current directory is on the path.

    Raises:
        InputError: ``path`` has another form, or the module or class cannot be imported.
    """
    module_name, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise InputError(f"invalid class {path!r}: expected package.module:Class")
    module = _load_module(module_name, path)
    if not hasattr(module, attribute):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise InputError(
            f"module {module_name} has no {attribute!r}", did_you_mean(attribute, classes)
        )
    return getattr(module, attribute)


def _load_module(name: str, path: str) -> object:
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed_import(name, error) from error
        raise InputError(
            f"no module {error.name!r}, which {path} requires",
            "Install its package, or add its directory to PYTHONPATH. The current directory is "
            "searched as well.",
        ) from None
    except InputError:
        raise
    except Exception as error:
        raise _failed_import(name, error) from error


def _failed_import(name: str, error: Exception) -> InputError:
    return InputError(
        f"module {name} cannot be imported: {type(error).__name__}: {error}",
        f"Show the traceback: python -c 'import {name}'",
    )
