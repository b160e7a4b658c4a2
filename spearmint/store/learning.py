"""Give a study earlier searches to learn from: its first points, and models for its chooser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.strategy import Lesson
from spearmint.transfer import EarlierSearch, Task, matched, n_seeds

LEARNED = "spearmint:learned"
"""Attribute of a study: the earlier searches whose best points it has tried."""
# This many times as many points, because some violate the linear constraints.
_SPARE = 8


class Learning:
    """The method of :class:`spearmint.store.study.Study` that learns from earlier searches."""

    lessons: tuple[str, ...] = ()
    """What the study learns, in lines."""
    _study: optuna.Study
    _distributions: dict[str, BaseDistribution]
    _tree: Tree | None

    def _set_lessons(self, lessons: Sequence[Lesson]) -> None:
        raise NotImplementedError

    @wraps_storage_errors()
    def learn(self, earlier: Sequence[EarlierSearch]) -> None:
        """Let the chooser learn from ``earlier``; queue their best points in a new study.

        Call ``use`` before this.

        Raises:
            InputError: None of them can be used.
        """
        if not earlier:
            self._note_earlier_runs()
            return
        if len(self._study.directions) > 1:
            raise InputError(
                "a search with several objectives cannot learn from earlier searches",
                "Remove learn_from, or all but one objective.",
            )
        names = self._searched()
        space = self._tree.space(names) if self._tree else _space(names)
        found = [(each, matched(each, variables_of(names, space))) for each in earlier]
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
        sampler = self._study.sampler
        has_model = isinstance(sampler, Chooser) and sampler.learns
        used = [(each, task) for each, task in usable if has_model or not each.is_own]
        tasks = [task for each, task in used if not each.is_own]
        lines = [
            f"learns from {t.text}"
            if t.is_usable and (has_model or not each.is_own)
            else f"does not learn from {t.text}{t.problem}"
            for each, t in found
        ]
        if isinstance(sampler, Chooser) and has_model:
            sampler.earlier = [each for each, _ in usable]
        else:
            known = sampler.sampler if isinstance(sampler, FeasibleSampler) else sampler
            name = type(known).__name__
            tried = "it tries their best points only" if tasks else "it does not learn from them"
            lines.append(f"{name} has no model of earlier searches: {tried}")
        self._queue(tasks, names, space)
        self._set_lessons(
            [Lesson(each.name, len(task.y), has_model=has_model) for each, task in used]
        )
        self.lessons = tuple(lines)

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

    def _queue(
        self, tasks: Sequence[Task], names: Mapping[str, BaseDistribution], space: Space
    ) -> None:
        """Queue the best points, once, unless the study has begun."""
        study = self._study
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


def _space(names: Mapping[str, BaseDistribution]) -> Space:
    return Space(tuple(map(dimension, names.values())))
