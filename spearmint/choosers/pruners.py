"""Pruners: what ends a trial early by the values it reports; Optuna's, found by name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from functools import cache

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner

from spearmint.choosers.registry import convert_args
from spearmint.errors import InputError, did_you_mean

_SHORT = {"halving": "SuccessiveHalvingPruner", "none": "NopPruner"}


def pruner_names() -> list[str]:
    """Return the short names that :func:`make_pruner` takes."""
    return sorted([*_SHORT, *(name.removesuffix("Pruner").lower() for name in _pruners())])


def make_pruner(name: str, args: Mapping[str, str]) -> BasePruner:
    """Return the pruner ``name``, its arguments converted from text.

    Args:
        name: ``median``, ``halving``, ``hyperband`` ..., in any case, with or without "Pruner".
        args: Arguments of its constructor.

    Raises:
        InputError: No such name or argument, or a value of the wrong kind.
    """
    short = {known.removesuffix("Pruner").lower(): known for known in _pruners()}
    wanted = name.lower().removesuffix("pruner")
    found = _SHORT.get(wanted) or short.get(wanted)
    if found is None:
        raise InputError(
            f"no pruner {name!r}; there are: {', '.join(pruner_names())}",
            did_you_mean(name, pruner_names()),
        )
    given = convert_args(found, _pruners()[found], args)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return _pruners()[found](**given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{found}: {error}", "Give what it needs by --pruner-args.") from error


@cache
def _pruners() -> dict[str, type[BasePruner]]:
    """Return Optuna's pruners that text can describe, by name."""
    exported = {name: getattr(optuna.pruners, name) for name in optuna.pruners.__all__}
    return {
        name: value
        for name, value in sorted(exported.items())
        if isinstance(value, type)
        and issubclass(value, BasePruner)
        and not inspect.isabstract(value)
        and name != "PatientPruner"  # wraps another one
    }
