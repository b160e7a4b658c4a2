"""Choosers by name, and their arguments from ``k=v`` strings."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler

from spearmint.choosers.cma import CMAChooser
from spearmint.choosers.gp_constrained_ei import GPConstrainedEIChooser
from spearmint.choosers.gp_ei import GPEIChooser, GPEIOptChooser
from spearmint.choosers.gp_ei_per_sec import GPEIperSecChooser
from spearmint.choosers.random_forest import RandomForestEIChooser
from spearmint.choosers.space_filling import RandomChooser, SequentialChooser
from spearmint.errors import InputError, did_you_mean

CHOOSERS: dict[str, type[BaseSampler]] = {
    "GPEIOptChooser": GPEIOptChooser,
    "GPEIChooser": GPEIChooser,
    "GPEIperSecChooser": GPEIperSecChooser,
    "GPConstrainedEIChooser": GPConstrainedEIChooser,
    "RandomForestEIChooser": RandomForestEIChooser,
    "CMAChooser": CMAChooser,
    "RandomChooser": RandomChooser,
    "SequentialChooser": SequentialChooser,
}

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def parse_method_args(text: str) -> dict[str, str]:
    """Return the pairs of ``"mcmc_iters=10,noiseless=1"``.

    Raises:
        InputError: A part is not ``key=value``, or a key comes twice.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"method argument {part!r} is not key=value", "Give k=v,k=v.")
        if key in pairs:
            raise InputError(f"method argument {key} is given twice")
        pairs[key] = value
    return pairs


def chooser_names() -> list[str]:
    """Return all names that :func:`make_chooser` takes: ours first, then Optuna's."""
    return [*CHOOSERS, *_optuna_samplers()]


def make_chooser(name: str, args: Mapping[str, str], *, seed: int) -> BaseSampler:
    """Return the chooser ``name``, ours or Optuna's, its arguments converted from text.

    Args:
        name: In any case, with or without "Chooser" or "Sampler" at its end.
        args: Arguments of its constructor that are numbers, switches or text.
        seed: Passed on where the chooser takes one.

    Raises:
        InputError: No such name or argument, a value of the wrong kind, or a library is missing.
    """
    known, chooser = _find(name)
    given = convert_args(known, chooser, args)
    if "seed" in inspect.signature(chooser).parameters:
        # Optuna's seeds are numpy's old ones, 32 bits.
        given["seed"] = seed if known in CHOOSERS else seed % (1 << 32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return chooser(**given)
    except ImportError as error:
        raise InputError(f"{known} needs a library: {error}") from error
    except ValueError as error:
        raise InputError(f"{known}: {error}") from error


def convert_args(
    name: str, maker: Callable[..., object], args: Mapping[str, str]
) -> dict[str, Any]:
    """Return ``args`` as the types that ``maker``, called ``name``, is declared to take.

    Raises:
        InputError: An argument that it has not, or a value of the wrong kind.
    """
    parameters = inspect.signature(maker).parameters
    kinds = {k: kind for k, p in parameters.items() if k != "seed" and (kind := _kind(p))}
    if unknown := [key for key in args if key not in kinds]:
        allowed = f"It takes: {', '.join(kinds)}." if kinds else "It takes none."
        raise InputError(f"{name} has no argument {', '.join(unknown)}", allowed)
    return {key: _convert(f"{name}: {key}", kinds[key], text) for key, text in args.items()}


def _find(name: str) -> tuple[str, Callable[..., BaseSampler]]:
    """Return the full name and the class of ``name``."""
    known = {**_optuna_samplers(), **CHOOSERS}
    short = {re.sub("(chooser|sampler)$", "", k.lower()): k for k in known}
    whole = {k.lower(): k for k in known}
    found = whole.get(name.lower()) or short.get(name.lower())
    if found:
        return found, known[found]
    hint = _longer(name) or did_you_mean(name, known)
    names = f"There are: {', '.join(chooser_names())}."
    raise InputError(f"no chooser {name!r}", f"{hint}\n{names}" if hint else names)


def _longer(name: str) -> str:
    """Return a question naming our choosers that begin with ``name``, or an empty string."""
    begun = [repr(k) for k in CHOOSERS if name and k.lower().startswith(name.lower())]
    return f"Did you mean {' or '.join(begun)}?" if begun else ""


@cache
def _optuna_samplers() -> dict[str, type[BaseSampler]]:
    """Return Optuna's samplers that need no more than a seed."""
    exported = {name: getattr(optuna.samplers, name) for name in optuna.samplers.__all__}
    return {
        name: value
        for name, value in sorted(exported.items())
        if isinstance(value, type)
        and issubclass(value, BaseSampler)
        and not inspect.isabstract(value)
        and _needs_nothing(value)
    }


def _needs_nothing(chooser: type[BaseSampler]) -> bool:
    parameters = inspect.signature(chooser).parameters.values()
    return all(p.default is not p.empty for p in parameters)


def _kind(parameter: inspect.Parameter) -> type | None:
    """Return the simple type of ``parameter``, or None if text cannot say it."""
    said = parameter.annotation
    text = said.__name__ if isinstance(said, type) else str(said).strip("'")
    named = {word.strip() for word in text.split("|")} - {"None"}
    kinds: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
    if named == {"int", "str"}:
        return object  # "auto" or a number
    return kinds.get(named.pop()) if len(named) == 1 else None


def _convert(what: str, kind: type, text: str) -> Any:
    """Return ``text`` as ``kind``."""
    if kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise InputError(f"{what} is {text!r}, must be 0 or 1")
    if kind is object:
        return int(text) if text.lstrip("-").isdigit() else text
    try:
        return kind(text)
    except ValueError as error:
        noun = "a whole number" if kind is int else "a number"
        raise InputError(f"{what} is {text!r}, must be {noun}") from error
