"""Give a study earlier searches to learn from: its first points, and models for its chooser."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

import optuna
from optuna.distributions import BaseDistribution

from spearmint.choosers.base import Chooser
from spearmint.choosers.encoding import dimension
from spearmint.choosers.feasible_sampler import FeasibleSampler
from spearmint.choosers.learning import first_points, n_initial_of, variables_of
from spearmint.choosers.tree import Tree
from spearmint.errors import InputError
from spearmint.gp.space import Space
from spearmint.model import Experiment, Trial, TrialState
from spearmint.store.distributions import to_flat
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.strategy import Lesson
from spearmint.transfer import (
    EarlierSearch,
    EarlierTrial,
    Task,
    Variables,
    matched,
    n_seeds,
)

LEARNED = "spearmint:learned"
"""Attribute of a study: the earlier searches whose best points it has tried."""
# This many times as many points, because some violate the linear constraints.
_SPARE = 8
# Maximum number of trials of a region that others learn from.
_MOST_READ = 1200


class Learning:
    """The methods of :class:`spearmint.store.study.Study` that learn from other searches."""

    lessons: tuple[str, ...] = ()
    """What the study learns, in lines."""
    experiment: Experiment
    _study: optuna.Study
    _distributions: dict[str, BaseDistribution]
    _tree: Tree | None
    _earlier: tuple[EarlierSearch, ...] = ()  # that have a model
    _regions: tuple[EarlierSearch, ...] = ()  # regions that have one

    def _set_lessons(self, lessons: Sequence[Lesson]) -> None:
        raise NotImplementedError

    def states(self) -> dict[int, TrialState]:
        """Return the state of each trial by its id, sorted."""
        raise NotImplementedError

    def some(self, ids: Sequence[int]) -> list[Trial]:
        """Return the trials with these ids, by id."""
        raise NotImplementedError

    def best(self, most: int | None = 1, *, feasible: bool = True) -> list[Trial]:
        """Return at most ``most`` complete trials, best first."""
        raise NotImplementedError

    @wraps_storage_errors()
    def learn(self, earlier: Sequence[EarlierSearch], *, with_regions: bool = False) -> None:
        """Let the chooser learn from ``earlier``; queue their best points in a new study.

        Call ``use`` before this.

        Args:
            earlier: Earlier searches.
            with_regions: Whether it also learns from other regions, see ``learn_from_regions``.

        Raises:
            InputError: None of them can be used.
        """
        if not earlier and not with_regions:
            self._note_earlier_runs()
            return
        if len(self._study.directions) > 1:
            raise InputError(
                "a search with several objectives cannot learn from other searches",
                "Remove learn_from, or all but one objective.",
            )
        variables = self._variables()
        found = [(each, matched(each, variables)) for each in earlier]
        usable = [(each, task) for each, task in found if task.is_usable]
        own = [each for each in earlier if each.is_own]
        if not usable and len(own) < len(earlier):
            raise InputError(
                "nothing to learn from the earlier searches:\n"
                + "\n".join(f"  {task.text}{task.problem}" for _, task in found),
                "At least 5 trials with different values, and a variable of this search, are "
                "needed. Name other searches, or none: with --learn-from, and with learn_from in "
                "config.pb.",
            )
        has_model = self._has_model
        used = [(each, task) for each, task in usable if has_model or not each.is_own]
        tasks = [task for each, task in used if not each.is_own]
        lines = [
            f"learns from {t.text}"
            if t.is_usable and (has_model or not each.is_own)
            else f"does not learn from {t.text}{t.problem}"
            for each, t in found
        ]
        lines += ["learns from the other regions"] if with_regions and has_model else []
        if has_model:
            self._earlier = tuple(each for each, _ in usable)
            self._teach()
        else:
            lines.append(self._without_model(tries=bool(tasks)))
        self._queue(tasks)
        self._set_lessons(
            [Lesson(each.name, len(task.y), has_model=has_model) for each, task in used]
        )
        self.lessons = tuple(lines)

    @property
    def _has_model(self) -> bool:
        """Whether the chooser has a model that learns from other searches."""
        sampler = self._study.sampler
        return isinstance(sampler, Chooser) and sampler.learns

    def _without_model(self, *, tries: bool) -> str:
        sampler = self._study.sampler
        known = sampler.sampler if isinstance(sampler, FeasibleSampler) else sampler
        what = "it tries their best points only" if tries else "it does not learn from them"
        return f"{type(known).__name__} has no model of other searches: {what}"

    def _teach(self) -> None:
        if isinstance(self._study.sampler, Chooser):
            self._study.sampler.earlier = [*self._earlier, *self._regions]

    @wraps_storage_errors()
    def learn_from_regions(self, others: Sequence[EarlierSearch]) -> None:
        """Let the chooser also learn from the other regions as they are now; no points."""
        if not self._has_model:
            return
        variables = self._variables()
        usable = tuple(each for each in others if matched(each, variables).is_usable)
        if usable == self._regions:
            return
        self._regions = usable
        self._teach()
        known = [(each, matched(each, variables)) for each in (*self._earlier, *usable)]
        self._set_lessons([Lesson(each.name, len(task.y)) for each, task in known])

    @wraps_storage_errors()
    def as_earlier(self) -> EarlierSearch:
        """Return this region as another region learns from it: of many trials, the best and others.

        Which others is drawn at random, by the number of trials.
        """
        complete = [i for i, state in self.states().items() if state is TrialState.COMPLETE]
        trials = [
            EarlierTrial(
                {name: _plain(value) for name, value in self._flat(trial).items()},
                trial.value,
                trial.is_feasible,
            )
            for trial in self.some(self._selected(complete))
            if trial.value is not None and math.isfinite(trial.value)
        ]
        return EarlierSearch(
            name=self.experiment.region,
            maximize=self.experiment.maximize,
            trials=tuple(trials),
            n_complete=len(complete),
            region=self.experiment.region,
        )

    def _selected(self, ids: Sequence[int]) -> list[int]:
        if len(ids) <= _MOST_READ:
            return list(ids)
        best = {trial.id for trial in self.best(_MOST_READ // 3, feasible=False)}
        others = [i for i in ids if i not in best]
        return [*best, *random.Random(len(ids)).sample(others, _MOST_READ - len(best))]  # noqa: S311

    def _flat(self, trial: Trial) -> dict[str, Any]:
        return to_flat(self.experiment.variables, trial.params)

    def _note_earlier_runs(self) -> None:
        """Say that earlier runs learned from searches that this run was not given."""
        if LEARNED in self._study.user_attrs:
            self._set_lessons([])
            self.lessons = ("Earlier runs learned with --learn-from; this run does not",)

    def _searched(self) -> dict[str, BaseDistribution]:
        """Return the parameters with more than one value, as the chooser orders them."""
        if self._tree is not None:
            return self._tree.searched
        every = self._distributions
        return {name: every[name] for name in sorted(every) if not every[name].single()}

    def _space(self) -> Space:
        names = self._searched()
        return (
            self._tree.space(names) if self._tree else Space(tuple(map(dimension, names.values())))
        )

    def _variables(self) -> Variables:
        return variables_of(self._searched(), self._space())

    def _queue(self, tasks: Sequence[Task]) -> None:
        """Queue the best points, once, unless the study has begun."""
        study, names, space = self._study, self._searched(), self._space()
        if LEARNED in study.user_attrs:
            return
        if not study.get_trials(deepcopy=False, states=_BEGUN):
            size = n_seeds(n_initial_of(study.sampler, len(names)), len(tasks))
            points = map(self._feasible, first_points(tasks, names, space, _SPARE * size))
            for point in islice(filter(None, points), size):
                study.enqueue_trial(point, skip_if_exists=True)
        study.set_user_attr(LEARNED, [task.text for task in tasks])

    def _feasible(self, point: dict[str, Any]) -> dict[str, Any] | None:
        """Return the active parameters of ``point``; None if it violates a linear constraint."""
        if self._tree is None:
            return point
        return self._tree.searched_at(point) if self._tree.is_inside(point) else None


_BEGUN = tuple(s for s in optuna.trial.TrialState if s is not optuna.trial.TrialState.WAITING)


def _plain(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(value)
