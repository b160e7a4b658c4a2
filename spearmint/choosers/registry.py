"""Choosers by name: built-in, Optuna's samplers, entry points, and ``package.module:Class``.

Only the requested chooser is imported.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from spearmint.choosers.arguments import convert_args
from spearmint.errors import InputError, did_you_mean
from spearmint.plugins import entry_point_classes, is_class_path, load_class

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

ENTRY_POINTS = "spearmint.choosers"
"""Group of the entry points by which packages add choosers."""

CHOOSERS: dict[str, str] = {
    "GPEIOptChooser": "spearmint.choosers.gp_ei:GPEIOptChooser",
    "GPEIChooser": "spearmint.choosers.gp_ei:GPEIChooser",
    "GPEIperSecChooser": "spearmint.choosers.gp_ei_per_sec:GPEIperSecChooser",
    "GPConstrainedEIChooser": "spearmint.choosers.gp_constrained_ei:GPConstrainedEIChooser",
    "RandomForestEIChooser": "spearmint.choosers.random_forest:RandomForestEIChooser",
    "CMAChooser": "spearmint.choosers.cma:CMAChooser",
    "RandomChooser": "spearmint.choosers.space_filling:RandomChooser",
    "SequentialChooser": "spearmint.choosers.space_filling:SequentialChooser",
}
"""The built-in choosers: ``package.module:Class`` by name."""


def chooser_names() -> list[str]:
    """Return all names that :func:`make_chooser` accepts: built-in, Optuna's, entry points."""
    return list(dict.fromkeys([*CHOOSERS, *_optuna_samplers(), *entry_point_classes(ENTRY_POINTS)]))


def chooser_class(name: str) -> type[BaseSampler]:
    """Return the class of the chooser ``name`` (see :func:`make_chooser`)."""
    return _find(name)[1]


def make_chooser(name: str, args: Mapping[str, str], *, seed: int) -> BaseSampler:
    """Create the chooser ``name``, with arguments converted from text.

    Args:
        name: Name in any letter case, with or without "Chooser" or "Sampler" at its end; or
            ``package.module:Class``, a subclass of :class:`spearmint.choosers.Chooser` or of
            ``optuna.samplers.BaseSampler``.
        args: Arguments of its constructor: numbers, booleans or text.
        seed: Passed to the constructor if it has a parameter ``seed``.

    Raises:
        InputError: The name, class or an argument does not exist, a value has the wrong type, or a
            library is missing.
    """
    from optuna.exceptions import ExperimentalWarning

    from spearmint.choosers.base import Chooser

    known, chooser = _find(name)
    given = convert_args(known, chooser, args)
    if "seed" in inspect.signature(chooser).parameters:
        # Optuna's samplers use numpy's legacy seeds, which have 32 bits.
        given["seed"] = seed if issubclass(chooser, Chooser) else seed % (1 << 32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return chooser(**given)
    except ImportError as error:
        raise InputError(f"cannot import a library for {known}: {error}") from error
    except ValueError as error:
        raise InputError(f"{known}: {error}") from error


def _find(name: str) -> tuple[str, type[BaseSampler]]:
    """Return the full name and the class of ``name``."""
    if is_class_path(name):
        return name, _sampler_class(name)
    if found := _match(name, CHOOSERS):
        return found, load_class(CHOOSERS[found])
    if found := _match(name, _optuna_samplers()):
        return found, _optuna_samplers()[found]
    plugins = entry_point_classes(ENTRY_POINTS)
    if found := _match(name, plugins):
        return found, _sampler_class(plugins[found])
    names = chooser_names()
    hint = _longer(name) or did_you_mean(name, names)
    choice = f"Available: {', '.join(names)}; or package.module:Class for a custom chooser."
    raise InputError(f"unknown chooser {name!r}", f"{hint}\n{choice}" if hint else choice)


def _match(name: str, names: Iterable[str]) -> str | None:
    """Return the element of ``names`` that matches ``name`` in any case, with or without suffix."""
    short = {re.sub("(chooser|sampler)$", "", k.lower()): k for k in names}
    whole = {k.lower(): k for k in names}
    return whole.get(name.lower()) or short.get(name.lower())


def _longer(name: str) -> str:
    """Return a question with the built-in choosers that start with ``name``; empty if none."""
    begun = [repr(k) for k in CHOOSERS if name and k.lower().startswith(name.lower())]
    return f"Did you mean {' or '.join(begun)}?" if begun else ""


def _sampler_class(path: str) -> type[BaseSampler]:
    """Return the class ``package.module:Class``; check that it is a complete chooser."""
    from optuna.samplers import BaseSampler

    found = load_class(path)
    if not isinstance(found, type) or not issubclass(found, BaseSampler):
        raise InputError(
            f"{path} is not a chooser",
            "Expected a subclass of spearmint.choosers.Chooser or optuna.samplers.BaseSampler.",
        )
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise InputError(f"{path} is abstract", f"Implement {lacking}.")
    return found


@cache
def _optuna_samplers() -> dict[str, type[BaseSampler]]:
    """Return Optuna's samplers that have no required arguments."""
    import optuna

    exported = {name: getattr(optuna.samplers, name) for name in optuna.samplers.__all__}
    return {
        name: value
        for name, value in sorted(exported.items())
        if isinstance(value, type)
        and issubclass(value, optuna.samplers.BaseSampler)
        and not inspect.isabstract(value)
        and _needs_nothing(value)
    }


def _needs_nothing(chooser: type[BaseSampler]) -> bool:
    parameters = inspect.signature(chooser).parameters.values()
    return all(p.default is not p.empty for p in parameters)
