"""The libraries of the extra ``report``."""

from __future__ import annotations

import importlib

from spearmint.errors import InputError
from starmint import extra_command

LIBRARIES = ("jinja2", "matplotlib")
"""Modules that a report imports."""


def require_libraries() -> None:
    """Raise InputError if the extra ``report`` is not installed."""
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InputError(
                f"a report needs {name}: {error}",
                f"Install the libraries for reports: {extra_command('report')}",
            ) from error
