"""Check what a trial returned: one number, or a dict of its objective and constraints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from spearmint.outputs import MAIN, OBJECTIVE

OUTPUTS = "outputs"
"""Key of trial.json: names of the constraints, if there are any."""

Result = dict[str, Any]
"""Part of result.json: ``value``, and ``constraints`` by name if there are any."""


class BadResult(Exception):
    """The user's code did not produce the numbers that were expected."""


def to_result(returned: object, names: Sequence[str], verb: str = "main returned") -> Result:
    """Return the numbers in ``returned``: one number, or a dict with the keys of ``names``.

    Args:
        returned: What the user's code returned; the key of the objective is ``objective``, or
            ``main`` as in the HIPS variant of Spearmint.
        names: Names of the constraints.
        verb: Start of error messages.

    Raises:
        BadResult: A number is missing or NaN, a name is unknown, or a value is not one number.
    """
    if not isinstance(returned, Mapping):
        if names:
            raise BadResult(f"{verb} {short(returned)}, expected {_expected(names)}")
        return {"value": number(returned, verb)}
    given = {OBJECTIVE if name == MAIN else name: value for name, value in returned.items()}
    known = (OBJECTIVE, *names)
    if unknown := [name for name in given if name not in known]:
        hint = _similar(str(unknown[0]), known)
        raise BadResult(f"{verb} unknown {unknown[0]!r}, expected {_expected(names)}{hint}")
    if len(given) < len(returned):
        raise BadResult(f"{verb} both {OBJECTIVE!r} and {MAIN!r}, expected one of them")
    if missing := [name for name in known if name not in given]:
        raise BadResult(f"{verb} no {missing[0]!r}, expected {_expected(names)}")
    numbers = {name: number(given[name], verb, name) for name in known}
    result: Result = {"value": numbers.pop(OBJECTIVE)}
    return {**result, "constraints": numbers} if names else result


def to_text_result(text: str, names: Sequence[str]) -> Result:
    """Return the numbers in the file of a SHELL trial: one number, or a JSON object.

    Raises:
        BadResult: As in :func:`to_result`.
    """
    verb, end = "wrote", " to $SPEARMINT_RESULT"
    try:
        content: object = float(text)
    except ValueError:
        try:
            content = json.loads(text)
        except ValueError:
            content = text
    if not names and not isinstance(content, float | Mapping):
        raise BadResult(f"{verb} {short(text)}{end}, expected one number")
    try:
        return to_result(content, names, verb)
    except BadResult as error:
        what, comma, rest = str(error).partition(", expected")
        raise BadResult(f"{what}{end}{comma}{rest}") from None


def number(returned: object, verb: str = "main returned", name: str = "") -> float:
    """Convert one number to a float.

    Raises:
        BadResult: It is None, text, NaN, several numbers or anything else that is not one number.
    """
    value = to_float(returned, verb, name)
    if math.isnan(value):
        raise BadResult(f"{verb} NaN{_of(name)}")
    return value


def to_float(returned: object, verb: str = "main returned", name: str = "") -> float:
    """Convert one number, or NaN, to a float. Raises BadResult for anything else."""
    what = f"{verb} {short(returned)}{_of(name)}, expected one number"
    if returned is None or isinstance(returned, str | bytes):
        raise BadResult(what)
    single: Any = returned
    if getattr(returned, "size", None) == 1 and hasattr(returned, "item"):
        single = single.item()
    try:
        return float(single)
    except (TypeError, ValueError, OverflowError):
        raise BadResult(what) from None


def short(value: object) -> str:
    """Return ``value`` in at most 60 characters of one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _of(name: str) -> str:
    return f" for {name!r}" if name else ""


def _expected(names: Iterable[str]) -> str:
    keys = ", ".join(f"{name!r}: number" for name in (OBJECTIVE, *names))
    return f"{{{keys}}}" if names else "one number"


def _similar(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f". Did you mean {close[0]!r}?" if close else ""
