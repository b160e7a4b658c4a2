"""Objectives and constraints of a search in Python: directions and pairs of limits, by name."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from spearmint.config.constraints import limits_problem, name_problem
from spearmint.config.objectives import objective_problem
from spearmint.errors import InputError
from spearmint.model import Variable
from spearmint.outputs import Constraint, Objective
from spearmint.trial.outputs import short

_FORM = 'Write (low, high), or None for no limit: constraints={"memory_gb": (None, 80)}'


def read_constraints(
    given: Mapping[str, Any] | None,
    variables: Iterable[Variable],
    objectives: Iterable[Objective],
) -> tuple[Constraint, ...]:
    """Return the constraints that a dict describes.

    Raises:
        InputError: One has another form, or the name of a variable or of another value.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"invalid constraints {given!r}", _FORM)
    taken = {variable.name for variable in variables}
    taken |= {objective.name for objective in objectives}
    return tuple(_read(name, form, taken) for name, form in (given or {}).items())


def read_objectives(
    given: Mapping[str, Any] | None, variables: Iterable[Variable]
) -> tuple[Objective, ...]:
    """Return the objectives that a dict of directions describes; empty for None.

    A direction can be a pair: the direction, and the reference.

    Raises:
        InputError: A direction is unknown, or a name is that of a variable or another value.
    """
    form = 'Write, for example: objectives={"error": ("minimize", 0.5), "speed": "maximize"}'
    if given is not None and (not isinstance(given, Mapping) or not given):
        raise InputError(f"invalid objectives {given!r}", form)
    taken = {variable.name for variable in variables}
    found = []
    for name, value in (given or {}).items():
        direction, reference = (
            value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        )
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"invalid name of an objective: {name!r}", form)
        if problem := objective_problem(name, taken):
            raise InputError(f"objective {problem}", "Give each value of a trial its own name.")
        if direction not in ("minimize", "maximize"):
            raise InputError(f"objective {name!r} has the direction {direction!r}", form)
        if reference is not None and not (_is_limit(reference) and math.isfinite(reference)):
            raise InputError(f"objective {name!r} has the reference {short(reference)}", form)
        if reference is not None and len(given or ()) == 1:
            raise InputError(f"the reference of {name!r} needs several objectives", "Remove it.")
        worst = None if reference is None else float(reference)
        found.append(Objective(name=name, maximize=direction == "maximize", reference=worst))
    return tuple(found)


def _read(name: Any, form: Any, taken: Iterable[str]) -> Constraint:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"invalid name of a constraint: {name!r}", "Write a text, not empty.")
    if problem := name_problem(name, taken):
        raise InputError(f"constraint {problem}", "Give each value of a trial a different name.")
    pair = form if isinstance(form, tuple) and len(form) == 2 else (form, form)
    if pair is not form or not all(map(_is_limit, pair)):
        raise InputError(f"constraint {name!r} has the limits {short(form)}", _FORM)
    low, high = pair
    low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    if problem := limits_problem(low, high):
        raise InputError(f"constraint {name!r} {problem}", _FORM)
    return Constraint(name=name, low=low, high=high)


def _is_limit(value: Any) -> bool:
    """Return whether ``value`` is None or a number, and not an integer above all floats."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True
