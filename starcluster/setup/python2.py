"""Plugins written for Python 2: notice them, and convert them."""

from __future__ import annotations

import shlex
from pathlib import Path

from starcluster.errors import InputError, MissingExtra, StarClusterError
from starmint import python2
from starmint.python2 import METHOD_ERROR, NAME_ERROR, OLD_MODULES, Conversion, MissingFissix


def fix_for(error: Exception, file: str) -> str:
    """Return how to convert the plugin ``file``; empty if the error is not of Python 2."""
    old = (
        isinstance(error, SyntaxError)
        or (isinstance(error, ModuleNotFoundError) and error.name in OLD_MODULES)
        or (isinstance(error, NameError) and NAME_ERROR.search(str(error)))
        or (isinstance(error, AttributeError) and METHOD_ERROR.search(str(error)))
    )
    command = f"starcluster convertplugin {shlex.quote(file)}"
    return f"If it is written for Python 2, convert it: {command}" if old else ""


def conversion_of(file: Path) -> Conversion | None:
    """Return how to convert a plugin; None if nothing is to convert.

    Raises:
        MissingExtra: fissix is not installed.
        InputError: It is neither Python 2 nor Python 3, or cannot be converted.
    """
    try:
        return python2.conversion_of(file)
    except python2.ConversionError as error:
        kind: type[StarClusterError] = InputError
        if isinstance(error, MissingFissix):
            kind = MissingExtra
        raise kind(error.what, error.fix) from error
