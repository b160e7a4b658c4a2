"""Check what a trial returned: one number, or a dict of its objective and constraints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from spearmint.outputs import MAIN, OBJECTIVE

OUTPUTS, OBJECTIVES = "outputs", "objectives"
"""Keys of trial.json: names of the constraints and of the objectives, if there are any."""

Result = dict[str, Any]
"""Part of result.json: ``value``, and ``objectives`` and ``constraints`` by name if there are any.

With several objectives, ``value`` is the first one.
"""


class BadResult(Exception):
    """The user's code did not produce the numbers that were expected.

    Attributes:
        details: More of result.json about the failure.
    """

    def __init__(self, reason: str, **details: object) -> None:
        super().__init__(reason)
        self.details = details


def to_result(
    returned: object,
    names: Sequence[str],
    verb: str = "main returned",
    objectives: Sequence[str] = (),
) -> Result:
    """Return the numbers in ``returned``: one number, or a dict with the keys of ``names``.

    Args:
        returned: What the user's code returned. The key of an objective without a name is
            ``objective``, or ``main`` as in the HIPS variant of Spearmint.
        names: Names of the constraints.
        verb: Start of error messages.
        objectives: Names of the objectives; empty for one without a name.

    Raises:
        BadResult: A number is missing or NaN, a name is unknown, or a value is not one number.
    """
    goals = tuple(objectives) or (OBJECTIVE,)
    known = (*goals, *names)
    if not isinstance(returned, Mapping):
        if len(known) > 1:
            raise BadResult(f"{verb} {short(returned)}, expected {_expected(known)}")
        return {"value": number(returned, verb)}
    given = dict(returned)
    if not objectives and MAIN in given and MAIN not in names:
        if OBJECTIVE in given:
            raise BadResult(f"{verb} both {OBJECTIVE!r} and {MAIN!r}, expected one of them")
        given[OBJECTIVE] = given.pop(MAIN)
    if unknown := [name for name in given if name not in known]:
        if len(known) == 1:
            raise BadResult(f"{verb} {short(returned)}, expected one number{_advice(known[0])}")
        hint = _similar(str(unknown[0]), known)
        raise BadResult(f"{verb} unknown {unknown[0]!r}, expected {_expected(known)}{hint}")
    if missing := [name for name in known if name not in given]:
        raise BadResult(f"{verb} no {missing[0]!r}, expected {_expected(known)}")
    numbers = {name: number(given[name], verb, name) for name in known}
    result: Result = {"value": numbers[goals[0]]}
    if len(goals) > 1:
        result["objectives"] = {name: numbers[name] for name in goals}
    if names:
        result["constraints"] = {name: numbers[name] for name in names}
    return result


def to_text_result(text: str, names: Sequence[str], objectives: Sequence[str] = ()) -> Result:
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
    is_one = not names and len(objectives) < 2
    if is_one and not isinstance(content, float | Mapping):
        raise BadResult(f"{verb} {short(text)}{end}, expected one number")
    try:
        return to_result(content, names, verb, objectives)
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


def _expected(names: Sequence[str]) -> str:
    keys = ", ".join(f"{name!r}: number" for name in names)
    return f"{{{keys}}}" if len(names) > 1 else "one number"


def _advice(goal: str) -> str:
    return f" or {{{goal!r}: number}}; no other names are declared"


def _similar(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f". Did you mean {close[0]!r}?" if close else ""
