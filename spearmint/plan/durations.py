"""What durations the next trials can have: learned from ended trials, or guessed; no I/O.

Both draw whole searches: in one search, all trials share what is uncertain about their mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spearmint.fields import parse_duration

Draws = NDArray[np.float64]
_NORMAL_90 = 1.2816  # standard deviations between the median and the 90 % quantile
_AROUND = 1.25  # a single guessed number is meant between 1/1.25 and 1.25 times it

PRIOR_SPREAD = 0.5
"""Standard deviation of log seconds before any trial ended, with the weight of two trials."""
PRIOR_TRIALS = 2.0
NEW_KINDS = 4.0
"""Weight, in trials, of durations unlike all that were seen (concentration of the process)."""
LONGEST_S = 100 * 365 * 86400.0
"""Longest duration in a plan: 100 years. Later times have no date."""
LEVEL = 0.1
"""Common relative change of later trials: other hosts, and points where the search ends up."""


class DurationModel(Protocol):
    """Draws durations of trials in many searches."""

    def draw(self, random: np.random.Generator, searches: int, trials: int) -> Draws:
        """Return seconds of shape ``(searches, trials)``; each includes its failed attempts."""


@dataclass(frozen=True, slots=True)
class GuessedDurations:
    """Durations that a user expects: 80 % of the trials take between ``low`` and ``high`` s.

    Half of the variance is common to all trials of a search: the guess itself can be wrong.
    """

    low: float
    high: float

    def draw(self, random: np.random.Generator, searches: int, trials: int) -> Draws:
        """Return seconds of shape ``(searches, trials)``."""
        middle = (math.log(self.low) + math.log(self.high)) / 2
        each = (math.log(self.high) - math.log(self.low)) / (2 * _NORMAL_90) / math.sqrt(2)
        common = random.normal(middle, each, (searches, 1))
        return np.exp(common + random.normal(0.0, each, (searches, trials)))


@dataclass(frozen=True, slots=True)
class LearnedDurations:
    """Durations by a Dirichlet process around those of ended trials.

    The base measure is log-normal with the normal-inverse-gamma posterior of the log seconds
    (Gelman et al. 2013, section 3.3): few trials say little about the mean. With many trials the
    draws follow the seen durations, whatever their distribution.

    Attributes:
        finished: Seconds of complete and pruned trials.
        broken: Seconds of failed (broken) trials, which do not count for the number of trials.
    """

    finished: Sequence[float]
    broken: Sequence[float] = ()

    def draw(self, random: np.random.Generator, searches: int, trials: int) -> Draws:
        """Return seconds of shape ``(searches, trials)``."""
        seconds = _process(random, self.finished, searches, trials)
        if self.broken:
            failed, fine = len(self.broken), len(self.finished)
            share = random.beta(failed + 0.5, fine + 0.5, (searches, 1))
            attempts = random.geometric(1 - share, (searches, trials)) - 1
            mean = _process(random, self.broken, searches, 20).mean(axis=1, keepdims=True)
            seconds += attempts * mean
        return np.asarray(seconds * np.exp(random.normal(0.0, LEVEL, (searches, 1))))


def _process(
    random: np.random.Generator, seen: Sequence[float], searches: int, trials: int
) -> Draws:
    known = np.asarray(seen, dtype=float)
    logs = np.log(known)
    freedom = len(known) - 1 + PRIOR_TRIALS
    squares = PRIOR_TRIALS * PRIOR_SPREAD**2 + float(((logs - logs.mean()) ** 2).sum())
    variance = squares / random.chisquare(freedom, (searches, 1))
    middle = random.normal(logs.mean(), np.sqrt(variance / len(known)))
    drawn = np.exp(random.normal(middle, np.sqrt(variance), (searches, trials)))
    is_seen = random.random((searches, trials)) < random.beta(len(known), NEW_KINDS, (searches, 1))
    return np.asarray(np.where(is_seen, _resampled(random, known, searches, trials), drawn))


def _resampled(random: np.random.Generator, known: Draws, searches: int, trials: int) -> Draws:
    """Return seen durations; each search weights them differently (Rubin 1981)."""
    sums = np.cumsum(random.dirichlet(np.ones(len(known)), searches), axis=1)
    places = random.random((searches, trials))
    chosen = [np.searchsorted(line, place) for line, place in zip(sums, places, strict=True)]
    return np.asarray(known[np.minimum(np.stack(chosen), len(known) - 1)])


def parse_range(text: str) -> tuple[float, float]:
    """Return the two durations of ``90..200`` or ``2m..5m`` in seconds; of ``120``, around it.

    Raises:
        ValueError: ``text`` is something else.
    """
    first, dots, last = text.partition("..")
    low = parse_duration(first)
    high = parse_duration(last) if dots else low
    if high > LONGEST_S:
        raise ValueError(f"invalid range {text!r}: more than 100 years")
    if not dots:
        return low / _AROUND, low * _AROUND
    if high < low:
        raise ValueError(f"invalid range {text!r}: the second duration is shorter than the first")
    return low, high
