"""Match the trials of an earlier search to the variables of a search.

Coordinates are those of the search, also outside of its bounds: a model of the earlier search can
use trials there. A variable that only one of the two searches has is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spearmint.gp.numerics import Array
from spearmint.gp.space import Dimension, Space
from spearmint.transfer.earlier import EarlierSearch, EarlierTrial

# Trials farther outside of the bounds than this many ranges are not used.
_BEYOND = 1.0
# A variable is shared if at least this share of the trials has a value of it near the bounds.
_SHARED = 0.2
_MOST_NAMED, _LONGEST = 10, 60  # names of other users in messages
LEAST_TRIALS = 5
"""Minimum number of trials of an earlier search to learn from."""
MOST_TRIALS = 200
"""Maximum number of trials in its model: a third the best, the others at random."""


@dataclass(frozen=True)
class Variables:
    """The searched variables of a search, by dimension.

    Attributes:
        names: Their element names.
        space: Their dimensions.
        choices: The texts of each category's choices; empty for numbers.
    """

    names: tuple[str, ...]
    space: Space
    choices: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Task:
    """The trials of an earlier search in the coordinates of a search of D variables.

    Attributes:
        points: Their coordinates, also outside of [0, 1], shape ``(n, D)``; those of dimensions
            that are not shared have no meaning.
        y: Their values, to be minimised, shape ``(n,)``.
        is_feasible: Whether each trial meets the constraints of the earlier search.
        shared: The shared dimensions, sorted.
        text: What is used and what is not, in one line.
    """

    points: Array
    y: Array
    is_feasible: NDArray[np.bool_]
    shared: NDArray[np.intp]
    text: str

    @property
    def is_usable(self) -> bool:
        """Whether there are enough trials with different values, and a shared variable."""
        return not self.problem

    @property
    def problem(self) -> str:
        """Why nothing can be learned, after a colon; empty if something can."""
        if not len(self.shared):
            return ": no variable of this search"
        if len(self.y) < LEAST_TRIALS:
            return f": fewer than {LEAST_TRIALS} trials"
        return "" if np.ptp(self.y) > 0.0 else ": all values are equal"


def matched(earlier: EarlierSearch, variables: Variables) -> Task:
    """Return the trials of ``earlier`` that fit ``variables``."""
    space, trials = variables.space, earlier.trials
    rows = np.array([_row(trial, variables) for trial in trials]).reshape(len(trials), len(space))
    near = (rows >= -_BEYOND) & (rows <= 1.0 + _BEYOND) | (space.is_category & ~np.isnan(rows))
    conditional = np.isin(np.arange(len(space)), [d for d, _ in space.conditions])
    absent = np.array([[n not in t.params for n in variables.names] for t in trials], dtype=bool)
    inactive = absent.reshape(rows.shape) & conditional
    least = max(_SHARED * len(trials), 1.0)
    shared = np.flatnonzero(near.sum(axis=0) >= np.where(conditional, 1.0, least))
    sign = -1.0 if earlier.maximize else 1.0
    kept = np.flatnonzero((near | inactive)[:, shared].all(axis=1))
    kept = kept[_some(np.array([sign * trials[i].value for i in kept]))]
    points = np.where(np.isnan(rows), space.centre, rows)[kept]
    if space.conditions:
        points = space.settle(points)
    used = [trials[i] for i in kept]
    return Task(
        points=points,
        y=np.array([sign * trial.value for trial in used]),
        is_feasible=np.array([trial.is_feasible for trial in used], dtype=bool),
        shared=shared,
        text=_text(earlier, variables, shared, len(used)),
    )


def _some(y: Array) -> NDArray[np.intp]:
    """Return the indices of the trials to use."""
    if len(y) <= MOST_TRIALS:
        return np.arange(len(y))
    from spearmint.gp.fit import subset  # imports scipy

    return subset(y, MOST_TRIALS, np.random.default_rng(len(y)))


def _row(trial: EarlierTrial, variables: Variables) -> list[float]:
    """Return the coordinates of a trial; NaN where it has no value that fits."""
    dims = variables.space.dimensions
    return [
        _coordinate(trial.params.get(name), dim, choices)
        for name, dim, choices in zip(variables.names, dims, variables.choices, strict=True)
    ]


def _coordinate(value: float | str | None, dim: Dimension, choices: Sequence[str]) -> float:
    if value is None or isinstance(value, str) != dim.is_category:
        return np.nan
    if isinstance(value, str):
        return float(choices.index(value)) if value in choices else np.nan
    low, high = (float(end) for end in dim.smooth(np.array([0.0, 1.0]))[0])
    if dim.log:
        if value <= 0.0:
            return np.nan
        value, low, high = (float(x) for x in np.log([value, low, high]))
    width = 0.5 * high - 0.5 * low
    return (0.5 * value - 0.5 * low) / width if width > 0.0 else np.nan


def _text(
    earlier: EarlierSearch, variables: Variables, shared: NDArray[np.intp], n_used: int
) -> str:
    """Return what is used of an earlier search."""
    known = _kinds(earlier)
    names = [variables.names[d] for d in shared]
    ours = dict(zip(variables.names, variables.space.is_category, strict=True))
    reasons = [
        f"{name} ({_why(known.get(name), is_category=bool(is_category))})"
        for name, is_category in ours.items()
        if name not in names
    ]
    others = [printable(name) for name in known if name not in ours]
    reasons += [f"{name} (not searched here)" for name in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        reasons.append(f"{len(others) - _MOST_NAMED} more")
    used = str(n_used) if n_used == earlier.n_complete else f"{n_used} of {earlier.n_complete}"
    counted = f"{used} trial{'s' * (earlier.n_complete != 1)}"
    what = f"variables {', '.join(names)}" if len(names) != 1 else f"variable {names[0]}"
    ignored = f"; not: {', '.join(reasons)}" if reasons else ""
    return f"{earlier.name}: {counted}" + (f", {what}" if names else "") + ignored


def printable(text: str, longest: int = _LONGEST) -> str:
    """Return a text that another user chose, short and without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[:longest])


def _kinds(earlier: EarlierSearch) -> Mapping[str, bool]:
    """Return whether each variable of an earlier search is a category."""
    return {n: isinstance(v, str) for t in reversed(earlier.trials) for n, v in t.params.items()}


def _why(known: bool | None, *, is_category: bool) -> str:
    """Return why a variable is not shared."""
    if known is None:
        return "not in that search"
    if known != is_category:
        return "a category there" if known else "a number there"
    return "other choices there" if is_category else "other bounds there"
