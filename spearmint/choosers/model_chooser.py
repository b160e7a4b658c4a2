"""The base class of choosers with a model: selects the trials to fit, and the first points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution

from spearmint.choosers.base import Chooser, placeholder
from spearmint.choosers.encoding import dimension, from_float
from spearmint.choosers.history import (
    History,
    common_space,
    history,
    some_trials_of,
    trials_of,
    with_pending,
)
from spearmint.choosers.learning import ensemble_of
from spearmint.choosers.sobol import sobol_point
from spearmint.gp.space import Space

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from spearmint.gp.numerics import Array

# Number of Sobol points before the first model: the dimensions plus one, within these limits.
_MIN_INITIAL, _MAX_INITIAL = 3, 32
# Number of Sobol points in which to look for an untried point of a small space.
_SOBOL_TRIES = 64
# Linear constraints: this many times as many, to find a feasible point.
_MORE_TRIES = 8
# Seed of the selection of trials, so that it differs from the randomness of the model.
_SELECTION = 1


class ModelChooser(Chooser):
    """A chooser that fits a model to the finished trials, after a few Sobol points.

    Subclasses implement :meth:`best_point`; :mod:`spearmint.choosers.testing` has an example.

    Attributes:
        selects_trials: Whether the model needs only some trials of a large study, see
            :mod:`spearmint.choosers.selection`.
    """

    selects_trials = False

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that all complete trials have; all of a tree."""
        super().infer_relative_search_space(study, trial)
        if self.tree is not None:
            return self.tree.searched
        return common_space(self._trials(study, trial.number))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the point that the model proposes; a Sobol point for the first trials."""
        trials = self._trials(study, trial.number)
        point = next(self._joint(study, trials, trial.number, search_space))
        return self._with_fixed(trial, point)

    def joint_many(
        self, study: Study, ahead: Sequence[FrozenTrial], number: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the values that are chosen jointly, for trials ``number``, ``number`` + 1, ..."""
        space = self.infer_relative_search_space(study, placeholder(number))
        return self._joint(study, [*self._trials(study, number), *ahead], number, space)

    def _trials(self, study: Study, number: int) -> list[FrozenTrial]:
        """Return the trials of ``study`` for the model of trial ``number``.

        In a space with finitely many points, all trials are read: none repeats.
        """
        if self.selects_trials:
            rng = np.random.default_rng([self.seed, number, _SELECTION])
            some = some_trials_of(study, number, rng)
            if some is not None and self._is_continuous(some):
                return some
        return trials_of(study, number)

    def _is_continuous(self, trials: Sequence[FrozenTrial]) -> bool:
        """Return whether there are infinitely many points, in each branch."""
        if self.tree is not None:
            return self.tree.is_continuous
        space = common_space(trials)
        return bool(np.isinf(Space(tuple(map(dimension, space.values()))).n_points))

    def _joint(
        self,
        study: Study,
        trials: Sequence[FrozenTrial],
        number: int,
        search_space: Mapping[str, BaseDistribution],
    ) -> Iterator[dict[str, Any]]:
        """Yield values for ``search_space``, given ``trials`` and the values before."""
        space = dict(search_space)
        if not space:
            return repeat({})
        past = self._history(study, trials, space)
        if self.earlier and self.learns:
            past = replace(past, ensemble=ensemble_of(self.earlier, space, past.space))
        if self.references:
            past = replace(past, references=self.references)
        if self.guesses:
            past = replace(past, guesses=self._guessed(space, past.space))
        return self._values(past, space, self._points(past, number))

    def _values(
        self, past: History, space: Mapping[str, BaseDistribution], points: Iterator[Array | None]
    ) -> Iterator[dict[str, Any]]:
        """Yield the values of ``points``, and set how each was proposed."""
        while True:
            self.restart, self.repeats = 0, False
            point = next(points)
            if past.ensemble is not None:
                self.learned = past.ensemble.weights
            yield {} if point is None else self._named(space, past.space.values(point))

    def _guessed(self, names: Iterable[str], space: Space) -> dict[int, tuple[float, float]]:
        """Return the coordinate and the spread of each guess, by dimension."""
        found = {}
        for d, name in enumerate(names):
            if name in self.guesses:
                value, spread = self.guesses[name]
                found[d] = float(space.dimensions[d].coordinate(np.array([value]))[0]), spread
        return found

    @staticmethod
    def _named(space: Mapping[str, BaseDistribution], values: Sequence[float]) -> dict[str, Any]:
        return {k: from_float(d, v) for (k, d), v in zip(space.items(), values, strict=True)}

    def _points(self, past: History, number: int) -> Iterator[Array | None]:
        """Yield the points of trials ``number`` and later; None for a Sobol point of the trial."""
        while self._is_early(past):
            # In an infinite space no point repeats, and sample_independent gives the same point
            # faster.
            if not past.space.may_repeat and not past.space.linear:
                yield None
                point = self._sobol_points(past, [number])[0]
            else:
                point = self._initial_point(past, number, self._rng(number))
                yield point
            past = with_pending(past, point)
            number += 1
        for point in self.best_points(past, map(self._rng, count(number))):
            yield self._inside(past.space, point, number)
            number += 1

    def _inside(self, space: Space, point: Array, number: int) -> Array:
        """Return ``point``, moved to be feasible if a chooser of users ignores the constraints."""
        if not space.linear or space.meets(point[None])[0]:
            return point
        from spearmint.feasible import within

        return np.asarray(within(space, point[None], self._rng(number))[0])

    def _rng(self, number: int) -> np.random.Generator:
        """Return the source of randomness of trial ``number``."""
        return np.random.default_rng([self.seed, number])

    def _is_early(self, past: History) -> bool:
        """Return whether there are too few trials for a model."""
        n, n_pending = len(past.tried), len(past.pending)
        few = n < 2 or n + n_pending < self.n_initial(len(past.space))
        if few and past.ensemble is not None:
            few = not past.ensemble.is_proven(past.space, past.points, past.y)
        return few or not len(past.y)

    def _history(
        self, study: Study, trials: Sequence[FrozenTrial], space: dict[str, BaseDistribution]
    ) -> History:
        """Return the trials to which the model is fitted."""
        return history(study, trials, space, tree=self.tree)

    def n_initial(self, n_dimensions: int) -> int:
        """Return the number of trials before the first model is fitted."""
        return min(max(_MIN_INITIAL, n_dimensions + 1), _MAX_INITIAL)

    def _initial_point(self, past: History, number: int, rng: np.random.Generator) -> Array:
        """Return the first untried Sobol point, starting at ``number``."""
        from spearmint.acquisition.next_point import first_new

        n_tries = _SOBOL_TRIES * (_MORE_TRIES if past.space.linear else 1)
        points = self._sobol_points(past, range(number, number + n_tries))
        known = [past.tried, past.pending, *(point[None] for point in past.unused)]
        return first_new(past.space, points, np.concatenate(known), rng)

    def _sobol_points(self, past: History, numbers: Iterable[int]) -> Array:
        cube = np.array([sobol_point(self.seed, i, len(past.space)) for i in numbers])
        return past.space.from_cube(cube)

    def best_points(self, past: History, rngs: Iterator[np.random.Generator]) -> Iterator[Array]:
        """Yield points that the model proposes, each as if the ones before it were running.

        A chooser that fits a model for each of them needs no other method. One with a costly fit
        can override this, and fit once.
        """
        for rng in rngs:
            point = self.best_point(past, rng)
            yield point
            past = with_pending(past, point)

    @abstractmethod
    def best_point(self, past: History, rng: np.random.Generator) -> Array:
        """Return the point that the model proposes, valid in ``past.space``, shape ``(D,)``.

        Args:
            past: At least two finished trials, of which at least one has a value.
            rng: The only source of randomness, seeded by the chooser's seed and the trial number.
        """
