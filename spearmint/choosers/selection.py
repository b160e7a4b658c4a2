"""Select the trials of a large study to which a model is fitted, without reading the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from spearmint.gp.numerics import Array

if TYPE_CHECKING:
    from optuna.study import Study

# Above this number of ended trials, a model is fitted to some of them: the time to factorise the
# covariance grows with the cube.
MOST_ENDED, KEPT_ENDED = 1000, 500
# Maximum number of running trials in the model. The points of a batch always know each other.
MOST_RUNNING = 300


@dataclass(frozen=True)
class Outline:
    """States and values of the trials of a study by number, as arrays of shape ``(n,)``.

    Attributes:
        is_running: Whether the trial runs.
        has_ended: Whether the trial has any final state.
        values: The value of a complete trial; NaN for others, and for infeasible ones.
    """

    is_running: NDArray[np.bool_]
    has_ended: NDArray[np.bool_]
    values: Array


@runtime_checkable
class OutlinedStorage(Protocol):
    """A storage of Optuna that reads some trials without reading all of them."""

    def outline(self, study_id: int) -> Outline:
        """Return the states and values of all trials."""
        ...

    def read_numbers(self, study_id: int, numbers: Sequence[int]) -> list[FrozenTrial]:
        """Return the trials with these numbers, by number."""
        ...


def selected_trials(
    study: Study, left_out: set[int], rng: np.random.Generator
) -> list[FrozenTrial] | None:
    """Return the trials of ``study`` that :func:`selected` selects; None for all of them.

    An ``OutlinedStorage`` reads only these.
    """
    if len(study.directions) > 1:
        return None  # the first objective alone would leave out most of the Pareto front
    study_id, storage, sign = study._study_id, study._storage, sign_of(study)
    if isinstance(storage, OutlinedStorage):
        chosen = selected(storage.outline(study_id), left_out, sign=sign, rng=rng)
        return None if chosen is None else storage.read_numbers(study_id, chosen.tolist())
    trials = study.get_trials(deepcopy=False)
    chosen = selected(outline_of(trials), left_out, sign=sign, rng=rng)
    return None if chosen is None else [trials[number] for number in chosen]


def sign_of(study: Study) -> float:
    """Return -1 if larger values are better, else 1."""
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0


def signs_of(study: Study) -> list[float]:
    """Return for each objective -1 if larger values are better, else 1."""
    return [-1.0 if each == StudyDirection.MAXIMIZE else 1.0 for each in study.directions]


def outline_of(trials: Sequence[FrozenTrial]) -> Outline:
    """Return the outline of ``trials``, all trials of a study by number."""
    complete = TrialState.COMPLETE
    return Outline(
        np.array([trial.state is TrialState.RUNNING for trial in trials], dtype=bool),
        np.array([trial.state.is_finished() for trial in trials], dtype=bool),
        np.array([t.values[0] if t.state is complete and t.values else np.nan for t in trials]),
    )


def selected(
    outline: Outline, left_out: set[int], *, sign: float, rng: np.random.Generator
) -> NDArray[np.intp] | None:
    """Return the numbers of the trials for a model in order; None for all of them.

    Of more than ``MOST_ENDED`` ended trials, ``KEPT_ENDED`` are used, as
    :func:`spearmint.gp.fit.recent_subset` selects them. A trial without a finite value counts as
    the worst.

    Args:
        outline: All trials.
        left_out: Numbers of trials to leave out.
        sign: -1 if larger values are better, else 1.
        rng: The source of randomness.
    """
    known = np.ones(len(outline.values), dtype=bool)
    known[[number for number in left_out if 0 <= number < len(known)]] = False
    ended = np.flatnonzero(outline.has_ended & known)
    if len(ended) <= MOST_ENDED:
        return None
    from spearmint.gp.fit import recent_subset  # imports scipy

    values = sign * outline.values[ended]
    values = np.where(np.isfinite(values), values, np.inf)
    running = np.flatnonzero(outline.is_running & known)
    some = _latest_and_others(running, MOST_RUNNING, rng)
    return np.sort(np.concatenate((ended[recent_subset(values, KEPT_ENDED, rng)], some)))


def _latest_and_others(
    numbers: NDArray[np.intp], most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return at most ``most`` of ``numbers``: half of them the last ones, the others at random."""
    if len(numbers) <= most:
        return numbers
    first = len(numbers) - most // 2
    drawn = rng.choice(numbers[:first], most - most // 2, replace=False)
    return np.concatenate((drawn, numbers[first:]))
