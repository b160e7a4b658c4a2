"""Queue points, and ask the sampler of a study for new trials, one or many at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.trial import TrialState as OptunaState
from optuna.trial import create_trial

from spearmint.choosers.base import Chooser
from spearmint.choosers.feasible_sampler import FeasibleSampler
from spearmint.choosers.tree import Tree
from spearmint.errors import InputError
from spearmint.model import Experiment, Trial, TrialState
from spearmint.store.distributions import guessed_points, to_flat, to_params
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.sql.fast_reads import one_transaction, one_view
from spearmint.store.strategy import Proposed


class Asking:
    """The methods of :class:`spearmint.store.study.Study` that make new trials."""

    experiment: Experiment
    _storage: BaseStorage
    _study: optuna.Study
    _distributions: dict[str, BaseDistribution]
    _tree: Tree | None
    _proposed: dict[frozenset[tuple[str, Any]], deque[Proposed]]  # of points ahead of need

    def _note_strategy(self, trial_id: int, proposed: Proposed) -> None:
        raise NotImplementedError

    def at(self, points: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Return the trials that have exactly one of ``points``, by element name, in any state."""
        raise NotImplementedError

    def fixed_points(self) -> list[dict[str, Any]]:
        """Return all points that were queued, also those that have a trial, by element name."""
        raise NotImplementedError

    def expect(self, total: int | None) -> None:
        """Tell the sampler after how many trials the search ends; None if this is not known."""
        if isinstance(self._study.sampler, Chooser):
            self._study.sampler.total = total

    def notices(self) -> list[str]:
        """Return messages of the sampler for the user since the last call."""
        sampler = self._study.sampler
        return sampler.notices() if isinstance(sampler, Chooser) else []

    @wraps_storage_errors()
    def enqueue_seed_points(self) -> None:
        """Queue the seed points of config.pb, and the guesses, that were not queued before."""
        for point in self.experiment.seed_points:
            self.enqueue(to_flat(self.experiment.variables, point))
        if guesses := guessed_points(self.experiment.variables):
            queued = self.fixed_points()
            for point in guesses:  # without a guess that was removed, it is part of an earlier one
                if not any(point.items() <= known.items() for known in queued):
                    self.enqueue(point)

    @wraps_storage_errors()
    def enqueue(self, point: Mapping[str, Any], *, repeat: bool = False) -> None:
        """Queue a point, by element name, unless it was tried before and is not to ``repeat``."""
        if repeat or not (point in self.fixed_points() or self.at([point])):
            self._study.enqueue_trial(dict(point))

    @wraps_storage_errors()
    def queued_points(self) -> list[dict[str, Any]]:
        """Return the queued points that no trial has yet, by element name."""
        waiting = self._study.get_trials(deepcopy=False, states=(OptunaState.WAITING,))
        return [trial.system_attrs.get("fixed_params", {}) for trial in waiting]

    @wraps_storage_errors()
    def ask(self) -> Trial:
        """Return a new running trial, proposed by the sampler or a seed point."""
        with one_view(self._storage), self._wraps_sampler_errors():
            asked = self._study.ask(self._distributions if self._tree is None else {})
            if self._tree is not None:
                self._tree.suggest(asked)
        proposed, plain = self._last_proposed, Proposed()
        if proposed != plain:
            is_queued = "fixed_params" in self._storage.get_trial_system_attrs(asked._trial_id)
            proposed = plain if is_queued else proposed
        self._note_strategy(asked._trial_id, proposed)
        return self._asked(asked.number, asked.params)

    def ask_many(self, count: int) -> list[Trial]:
        """Return ``count`` new running trials, of which the queued points are the first.

        A chooser with a model fits it once, and each point takes account of the ones before it. A
        sampler of Optuna is asked for one trial after the other.
        """
        trials: list[Trial] = []
        waiting = len(self.queued_points())
        while len(trials) < count:
            points = self.propose() if len(trials) >= waiting else None
            if points is None:
                trials.append(self.ask())
            else:
                trials += self._add_many(list(islice(points, count - len(trials))))
        return trials

    @wraps_storage_errors()
    def _add_many(self, points: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Store new running trials at ``points`` in one transaction."""
        with one_transaction(self._storage, all_or_nothing=True):
            return [self.add_running(point) for point in points]

    @wraps_storage_errors()
    def propose(self, ahead: Sequence[Mapping[str, Any]] = ()) -> Iterator[dict[str, Any]] | None:
        """Return an iterator of points to evaluate, by element name; it stores nothing.

        Each point is computed when it is asked for, from the results of the time of this call. None
        if the sampler is one of Optuna, which stores each trial that it proposes.

        Args:
            ahead: Earlier points that are not stored yet, which count as running trials.
        """
        sampler = self._study.sampler
        if not isinstance(sampler, Chooser):
            return None
        with one_view(self._storage), self._wraps_sampler_errors():
            points = sampler.ask_many(self._study, self._distributions, ahead=ahead)
        return self._each(points)

    def _each(self, points: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        while True:
            with self._wraps_sampler_errors():
                point = next(points)
            key, proposed = frozenset(point.items()), self._last_proposed
            if key in self._proposed or proposed != Proposed():  # a point can be proposed again
                self._proposed.setdefault(key, deque()).append(proposed)
            yield point

    def _pop_proposed(self, point: Mapping[str, Any]) -> Proposed:
        """Return how a point was proposed that is stored now."""
        known = self._proposed.get(key := frozenset(point.items()))
        if known is None:
            return Proposed()
        proposed = known.popleft()
        if not known:
            del self._proposed[key]
        return proposed

    @property
    def _last_proposed(self) -> Proposed:
        """How the last point was proposed."""
        sampler = self._study.sampler
        if not isinstance(sampler, Chooser):
            return Proposed()
        return Proposed(sampler.restart, sampler.repeats)

    @wraps_storage_errors()
    def add_running(self, point: Mapping[str, Any]) -> Trial:
        """Store a new running trial at ``point``, by element name, in one transaction."""
        running = create_trial(
            state=OptunaState.RUNNING,
            params=dict(point),
            distributions=self._distributions_of(point),
        )
        trial_id = self._storage.create_new_trial(self._study._study_id, running)
        self._note_strategy(trial_id, self._pop_proposed(point))
        return self._asked(self._storage.get_trial_number_from_id(trial_id), point)

    def _distributions_of(self, point: Mapping[str, Any]) -> dict[str, BaseDistribution]:
        """Return the distributions of the elements that ``point`` has."""
        if self._tree is None:
            return self._distributions
        return {name: self._distributions[name] for name in point}

    @contextmanager
    def _wraps_sampler_errors(self) -> Iterator[None]:
        """Raise InputError if the sampler cannot propose trials of this space."""
        try:
            yield
        except (ImportError, NotImplementedError, TypeError, ValueError) as error:
            sampler = self._study.sampler
            sampler = sampler.sampler if isinstance(sampler, FeasibleSampler) else sampler
            raise InputError(
                f"{type(sampler).__name__} cannot propose trials for this config.pb: {error}",
                "Choose another --method.",
            ) from error

    def _asked(self, number: int, params: Mapping[str, Any]) -> Trial:
        """Return the new running trial ``number``."""
        return Trial(
            id=number + 1,
            state=TrialState.RUNNING,
            params=to_params(self.experiment.variables, params),
            region=self.experiment.region,
        )
