"""A space in Python: the variables of a search as ranges, pairs and lists."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spearmint.config.conditions import ConditionProblem, with_conditions
from spearmint.config.variables import describe, guess_problem
from spearmint.errors import InputError
from spearmint.fidelity import Fidelity
from spearmint.linear import LinearConstraint
from spearmint.model import Kind, Params, Variable
from spearmint.outputs import Constraint, Objective
from spearmint.search.guess import Guess
from spearmint.search.outputs import read_constraints, read_objectives
from spearmint.search.require import read_require
from spearmint.search.rungs import read_fidelity, require_alone
from spearmint.search.when import When

_FORMS = (
    'Write (low, high) or (low, high, "log") for real numbers, range(low, end) or '
    '(range(low, end), "log") for whole numbers, a list of choices, or bool.'
)
_LARGEST = 2**53  # a double represents every integer up to this one
_CHOICES = (str, bool, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Space:
    """Variables of ``size`` 1, and the Python values of their choices.

    Attributes:
        variables: The variables, in the order of the dict.
        choices: By variable: each choice by its text in the study.
        constraints: Limits of other values that the function returns.
        objectives: The named objectives; empty for one without a name.
        linear: Linear constraints of the variables.
        fidelity: The rungs at which trials pause; None for none.
    """

    variables: tuple[Variable, ...]
    choices: Mapping[str, Mapping[str, Any]]
    constraints: tuple[Constraint, ...] = ()
    objectives: tuple[Objective, ...] = ()
    linear: tuple[LinearConstraint, ...] = ()
    fidelity: Fidelity | None = None

    def values(self, params: Params) -> dict[str, Any]:
        """Return the Python value of each variable: float, int or the choice as it was given."""
        return {
            name: self.choices[name][str(value)] if name in self.choices else value
            for name, (value,) in params.items()
        }


def read_space(
    space: Mapping[str, Any],
    constraints: Mapping[str, Any] | None = None,
    objectives: Mapping[str, str | tuple[str, float]] | None = None,
    require: str | Sequence[str] | None = None,
    fidelity: int | Mapping[str, Any] | None = None,
) -> Space:
    """Return the space that a dict describes.

    Raises:
        InputError: A variable, constraint or objective has another form; the message has its name.
    """
    if not space:
        raise InputError(
            "the space has no variable", 'Write, for example: {"lr": (1e-5, 1, "log")}'
        )
    for name in space:
        if not isinstance(name, str) or not name.strip() or not _is_unicode(name):
            raise InputError(f"invalid name of a variable: {name!r}", "Write a text, not empty.")
    needed = {name: form.conditions for name, form in space.items() if isinstance(form, When)}
    space = {name: form.form if name in needed else form for name, form in space.items()}
    guesses = {name: form for name, form in space.items() if isinstance(form, Guess)}
    space = {name: form.form if name in guesses else form for name, form in space.items()}
    choices = {name: _choices(name, form) for name, form in space.items() if _is_list(form)}
    variables = tuple(
        Variable(name=name, kind=Kind.ENUM, options=tuple(choices[name]))
        if name in choices
        else _number(name, form)
        for name, form in space.items()
    )
    variables = tuple(_with_guess(each, guesses.get(each.name)) for each in variables)
    variables = _with_conditions(variables, needed)
    goals = read_objectives(objectives, variables)
    limits = read_constraints(constraints, variables, goals)
    rungs = read_fidelity(fidelity)
    require_alone(rungs, {"objectives": objectives, "constraints": constraints})
    return Space(variables, choices, limits, goals, read_require(require, variables), rungs)


def _with_guess(variable: Variable, guess: Guess | None) -> Variable:
    """Return ``variable`` with a guess, if there is one."""
    if guess is None:
        return variable
    if variable.kind is Kind.ENUM:
        what = f"variable {variable.name!r}: choices have a guess"
        raise InputError(what, "Give guesses to ranges of numbers only.")
    if not (_is_real(guess.value) and _is_real(guess.spread)):
        what = f"variable {variable.name!r}: guess {guess.value!r} with spread {guess.spread!r}"
        raise InputError(what, "Write two numbers.")
    try:
        value, spread = float(guess.value), float(guess.spread)
    except OverflowError:
        what = f"variable {variable.name!r}: its guess or its spread is too large"
        raise InputError(what, f"Expected {describe(variable)}.") from None
    if problem := guess_problem(variable, value, spread):
        raise InputError(*problem[1:])
    return replace(variable, guess=value, spread=spread)


def _with_conditions(
    variables: tuple[Variable, ...], needed: Mapping[str, Mapping[str, Any]]
) -> tuple[Variable, ...]:
    """Return ``variables`` with the conditions of ``when``, by variable."""
    asked = {
        i: {parent: _texts(value) for parent, value in needed[variable.name].items()}
        for i, variable in enumerate(variables)
        if variable.name in needed
    }
    texts = {i: [f"{p}={'|'.join(v)}" for p, v in each.items()] for i, each in asked.items()}
    try:
        found = with_conditions(variables, texts)
    except ConditionProblem as problem:
        raise InputError(problem.what, problem.fix) from None
    for i, each in asked.items():
        for condition, values in zip(found[i].when, each.values(), strict=True):
            if len(condition.values) != len(values):  # config.pb has one text for both
                what = f"when of variable {found[i].name!r}: {'|'.join(values)!r} is also a choice"
                raise InputError(what, f"Give the choices of {condition.parent!r} names without |.")
    return found


def _texts(value: Any) -> list[str]:
    """Return the texts of a value, or of several, as in config.pb."""
    value = value.tolist() if hasattr(value, "tolist") else value
    several = value if isinstance(value, list | tuple | set | frozenset | range) else [value]
    try:
        return [str(_scalar(each)) for each in several]
    except ValueError:  # an integer with thousands of digits
        raise InputError("a value in when() is too large", "Write smaller numbers.") from None


def _is_list(form: Any) -> bool:
    return form is bool or isinstance(form, list)


def _is_unicode(text: str) -> bool:
    """Return whether ``text`` can be stored: it has no half of a surrogate pair."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _wrong(name: str, form: Any, why: str, fix: str = _FORMS) -> InputError:
    try:
        shown = repr(form)
    except ValueError:  # an integer with thousands of digits
        shown = f"a {type(form).__name__}"
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return InputError(f"variable {name!r}: {why}: {shown}", fix)


def _choices(name: str, form: Any) -> dict[str, Any]:
    """Return the choices of a list by their texts."""
    options = [False, True] if form is bool else form
    if not options:
        raise _wrong(name, form, "no choices", 'Write at least one: ["relu", "tanh"].')
    found: dict[str, Any] = {}
    for option in options:
        value = _scalar(option)
        if not isinstance(value, _CHOICES):
            fix = "Write names, and find the object by its name in the function."
            raise _wrong(name, value, "a choice is neither a text nor a number", fix)
        try:
            text = str(value)
        except ValueError:  # an integer with thousands of digits
            raise _wrong(name, value, "a choice is too large", "Write smaller numbers.") from None
        if not _is_unicode(text):
            raise _wrong(name, value, "a choice is not valid Unicode", "Write another text.")
        if text in found:
            raise _wrong(name, value, "duplicate choice", "List each choice once.")
        found[text] = value
    return found


def _scalar(option: Any) -> Any:
    """Return the Python value of a number of NumPy; anything else as it is."""
    if isinstance(option, str) or not hasattr(option, "item"):
        return option
    try:
        return option.item()
    except (RuntimeError, TypeError, ValueError):  # an array
        return option


def _number(name: str, form: Any) -> Variable:
    """Return a variable of numbers."""
    if isinstance(form, range):
        return _whole(name, form, log=False)
    if isinstance(form, bool):
        raise _wrong(name, form, "one value", "Write the type: bool")
    if isinstance(form, str | numbers.Number | None):
        fix = "Write it into the function, or as a list of one choice."
        raise _wrong(name, form, "one value, which cannot be searched", fix)
    if not isinstance(form, tuple):
        raise _wrong(name, form, f"a {type(form).__name__} does not describe a variable")
    *bounds, last = form or (None,)
    log = isinstance(last, str) and last == "log"
    bounds = bounds if log else [*bounds, last]
    if isinstance(last, str) and not log:
        if len(form) == 3 and not isinstance(form[0], str):
            raise _wrong(name, last, "unknown scale", 'Write "log", or only (low, high).')
        raise _wrong(name, form, "texts in a tuple", f"For choices, write a list: {list(form)!r}")
    if log and len(bounds) == 1 and isinstance(bounds[0], range):
        return _whole(name, bounds[0], log=True)
    if len(bounds) != 2 or not all(map(_is_real, bounds)):
        raise _wrong(name, form, "not a pair of numbers")
    try:
        low, high = map(float, bounds)
    except OverflowError:
        raise _wrong(name, form, "a bound is too large", "Write numbers below 1e308.") from None
    _check(name, form, low, high, log=log)
    return Variable(name=name, kind=Kind.FLOAT, low=low, high=high, log=log)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _whole(name: str, form: range, *, log: bool) -> Variable:
    if form.step != 1:
        fix = f"Write a list for these values only: list({form!r}), or a range without step."
        raise _wrong(name, form, "a range with a step", fix)
    if not form:
        raise _wrong(name, form, "an empty range", "The end of a range is not included.")
    _check(name, form, form[0], form[-1], log=log)
    return Variable(name=name, kind=Kind.INT, low=form[0], high=form[-1], log=log)


def _check(name: str, form: Any, low: float, high: float, *, log: bool) -> None:
    """Raise InputError for bounds that cannot be searched."""
    if isinstance(low, int) and max(abs(low), abs(high)) > _LARGEST:
        raise _wrong(name, form, "a bound is too large", "Write numbers from -2**53 to 2**53.")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise _wrong(name, form, "a bound is not finite", "Write finite numbers.")
    if low > high:
        raise _wrong(name, form, "low is above high", "Swap them.")
    if log and low <= 0:
        raise _wrong(
            name, form, "a log scale and a low that is not above 0", "Write a low above 0."
        )
