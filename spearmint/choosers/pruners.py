"""Pruners by name: Optuna's or custom. A pruner stops a trial early because of its reports."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from spearmint.choosers.arguments import convert_args
from spearmint.errors import InputError, did_you_mean
from spearmint.plugins import entry_point_classes, is_class_path, load_class

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

ENTRY_POINTS = "spearmint.pruners"
"""Group of the entry points by which packages add pruners."""

_SHORT = {"halving": "SuccessiveHalvingPruner", "none": "NopPruner"}


def pruner_names() -> list[str]:
    """Return the short names that :func:`make_pruner` accepts: Optuna's, then entry points."""
    optuna_names = sorted([*_SHORT, *map(_short_name, _optuna_pruners())])
    return list(dict.fromkeys([*optuna_names, *entry_point_classes(ENTRY_POINTS)]))


def make_pruner(name: str, args: Mapping[str, str]) -> BasePruner:
    """Create the pruner ``name``, with arguments converted from text.

    Args:
        name: Such as ``median``, ``halving`` or ``hyperband``, in any letter case, with or without
            "Pruner"; or ``package.module:Class``, a subclass of ``optuna.pruners.BasePruner``.
        args: Arguments of its constructor.

    Raises:
        InputError: The name, class or an argument does not exist, or a value has the wrong type.
    """
    from optuna.exceptions import ExperimentalWarning

    found, pruner = _find(name)
    given = convert_args(found, pruner, args)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return pruner(**given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{found}: {error}", "Set its arguments with --pruner-args.") from error


def _find(name: str) -> tuple[str, type[BasePruner]]:
    """Return the full name and the class of ``name``."""
    if is_class_path(name):
        return name, _pruner_class(name)
    wanted = _short_name(name)
    short = {_short_name(known): known for known in _optuna_pruners()}
    if found := _SHORT.get(wanted) or short.get(wanted):
        return found, _optuna_pruners()[found]
    points = entry_point_classes(ENTRY_POINTS)
    plugins = {_short_name(known): path for known, path in points.items()}
    if wanted in plugins:
        return name, _pruner_class(plugins[wanted])
    raise InputError(
        f"unknown pruner {name!r}; available: {', '.join(pruner_names())}; or package.module:Class",
        did_you_mean(name, pruner_names()),
    )


def _short_name(name: str) -> str:
    return name.lower().removesuffix("pruner")


def _pruner_class(path: str) -> type[BasePruner]:
    """Return the class ``package.module:Class``; check that it is a pruner."""
    from optuna.pruners import BasePruner

    found = load_class(path)
    if not isinstance(found, type) or not issubclass(found, BasePruner):
        raise InputError(
            f"{path} is not a pruner", "Expected a subclass of optuna.pruners.BasePruner."
        )
    return found


@cache
def _optuna_pruners() -> dict[str, type[BasePruner]]:
    """Return the Optuna pruners that can be created from text arguments, by name."""
    import optuna

    exported = {name: getattr(optuna.pruners, name) for name in optuna.pruners.__all__}
    return {
        name: value
        for name, value in sorted(exported.items())
        if isinstance(value, type)
        and issubclass(value, optuna.pruners.BasePruner)
        and not inspect.isabstract(value)
        and name != "PatientPruner"  # wraps another pruner
    }
