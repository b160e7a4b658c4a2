"""A trial that the caller evaluates."""

from __future__ import annotations

import contextlib
import math
import numbers
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

from spearmint.errors import InputError
from spearmint.model import Experiment
from spearmint.trial.outputs import BadResult, short, to_float, to_result

_MOST_STEP = 2**31 - 1  # of a column in PostgreSQL


@dataclass(frozen=True, slots=True)
class Part:
    """What a trial of a search with rungs trains now.

    Attributes:
        number: Number of rungs that the trial passed.
        steps: The steps after the last of them, up to the next one.
        folder: Directory of the trial, for its checkpoint.
    """

    number: int
    steps: range
    folder: Path


class Proposal:
    """A trial to evaluate.

    Attributes:
        id: Number of the trial, from 1; ``tell`` accepts it as well.
        params: Values as ``main`` would receive them: arrays of length ``size`` for FLOAT and INT,
            a list of str for ENUM. With a space in Python: one value for each variable.
        steps: The steps to train now, in a search with rungs: ``range(4, 10)`` continues a trial
            that trained 3 steps. Tell the value after the last one. None without rungs.
        folder: Directory of the trial for its checkpoint, in a search with rungs; it is the same
            when the trial continues. None without rungs.
    """

    def __init__(self, trial_id: int, params: Mapping[str, Any], part: Part | None = None) -> None:
        self.id = trial_id
        self.params = params
        self.steps = None if part is None else part.steps
        self.folder = None if part is None else part.folder
        self._passed = 0 if part is None else part.number

    def __repr__(self) -> str:
        steps = "" if self.steps is None else f", steps={self.steps}"
        return f"Proposal(id={self.id}, params={dict(self.params)!r}{steps})"


def to_value(value: object) -> float:
    """Return one number, or NaN for None. Raises InputError for anything else."""
    if value is None:
        return math.nan
    try:
        return to_float(value)
    except BadResult:
        raise InputError(
            f"invalid value {short(value)}: expected one number", "Tell None for a failed trial."
        ) from None


def to_reports(values: Mapping[int, float]) -> dict[int, float]:
    """Return values by step.

    Raises:
        InputError: A value is None or not a number, or a step is not a whole number, or too large
            for a database.
    """
    if any(value is None for value in values.values()):
        raise InputError("invalid value None: expected one number")
    numbers = {_step(step): to_value(value) for step, value in values.items()}
    if large := [step for step in numbers if abs(step) > _MOST_STEP]:
        raise InputError(
            f"the step {short(large[0])} is too large", f"Report steps up to {_MOST_STEP:,}."
        )
    return numbers


def _step(step: object) -> int:
    if isinstance(step, numbers.Real) and not isinstance(step, numbers.Integral):
        return int(float(step)) if float(step).is_integer() else whole("step", step)
    return whole("step", step)


def whole(what: str, number: object) -> int:
    """Return a whole number of Python or numpy. Raises InputError for anything else."""
    with contextlib.suppress(TypeError):  # of the bool of numpy
        if isinstance(number, SupportsIndex) and not isinstance(number, bool):
            return operator.index(number)
    raise InputError(f"invalid {what} {number!r}: expected a whole number")


def has_failed(value: object) -> bool:
    """Return whether ``value`` is None or NaN. Raises InputError for what is not one number."""
    return not isinstance(value, Mapping) and math.isnan(to_value(value))


def to_told(value: object, experiment: Experiment) -> dict[str, Any]:
    """Return ``value``, and ``objectives`` and ``constraints`` of ``experiment`` if it has any.

    Raises:
        InputError: A number is missing or NaN, or a name is unknown.
    """
    try:
        limited = [each.name for each in experiment.constraints]
        goals = [each.name for each in experiment.objectives]
        return to_result(value, limited, "tell received", goals)
    except BadResult as error:
        raise InputError(str(error), "Tell None for a failed trial.") from None
