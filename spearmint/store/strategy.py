"""How the chooser of a study works, for its users: what it learned, and whether it looks elsewhere.

The controller stores both, because only its chooser knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.storages._rdb import models
from sqlalchemy import Integer, cast, func, select

from spearmint.choosers.base import Chooser
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.sql.fast_reads import BulkReadStorage

RESTART = "spearmint:restart"
"""Attribute of a trial that looks elsewhere: the number of its restart, from 1."""
REPEATS = "spearmint:repeats"
"""Attribute of a trial that repeats an earlier point, because the values are noisy: True."""
LESSONS = "spearmint:lessons"
"""Attribute of a study: the earlier searches of the last run, see :class:`Lesson`."""
_TRIALS: Any = models.TrialModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__
_DIGITS = 2  # of stored weights


@dataclass(frozen=True, slots=True)
class Lesson:
    """An earlier search that a study learns from.

    Attributes:
        search: Its name in messages.
        trials: Number of its trials that are used.
        weight: The share of its model, 0 to 1, in the last proposal; None before the first model.
        has_model: Whether the chooser uses a model of it; otherwise only its best points are tried.
    """

    search: str
    trials: int
    weight: float | None = None
    has_model: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the lesson as data for ``--json``."""
        model = {} if self.has_model else {"first_points_only": True}
        return {"search": self.search, "trials": self.trials, "weight": self.weight, **model}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Trials that look elsewhere, after the search has converged.

    Attributes:
        since: The first of them.
        trials: Their number, of all states.
        restarts: Number of restarts that they belong to.
    """

    since: int
    trials: int
    restarts: int

    def to_json(self) -> dict[str, Any]:
        """Return the same as data for ``--json``."""
        return {"since_trial": self.since, "trials": self.trials, "restarts": self.restarts}


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Trials that repeat good points, because the values are noisy.

    Attributes:
        since: The first of them.
        trials: Their number, of all states.
    """

    since: int
    trials: int

    def to_json(self) -> dict[str, Any]:
        """Return the same as data for ``--json``."""
        return {"since_trial": self.since, "trials": self.trials}


@dataclass(frozen=True, slots=True)
class Proposed:
    """How a trial was proposed.

    Attributes:
        restart: The restart that it belongs to, from 1; 0 for none.
        repeats: Whether it repeats an earlier point under noise.
    """

    restart: int = 0
    repeats: bool = False


class Strategy:
    """The methods of :class:`spearmint.store.study.Study` on how its chooser works."""

    _storage: BaseStorage
    _study: optuna.Study

    @property
    def _sql(self) -> BulkReadStorage | None:
        raise NotImplementedError

    @wraps_storage_errors()
    def learned(self) -> list[Lesson]:
        """Return the earlier searches that the last run learned from."""
        return [Lesson(*row) for row in self._study.user_attrs.get(LESSONS, [])]

    @wraps_storage_errors()
    def elsewhere(self) -> Elsewhere | None:
        """Return the trials that look elsewhere; None if there are none."""
        if (storage := self._sql) is None:
            trials = self._study.get_trials(deepcopy=False)
            found = {t.number: t.user_attrs[RESTART] for t in trials if RESTART in t.user_attrs}
            return Elsewhere(min(found) + 1, len(found), max(found.values())) if found else None
        restart = cast(_ATTRS.c.value_json, Integer)
        query = (
            select(func.min(_TRIALS.c.number), func.count(), func.max(restart))
            .join_from(_TRIALS, _ATTRS, _ATTRS.c.trial_id == _TRIALS.c.trial_id)
            .where(_TRIALS.c.study_id == self._study._study_id, _ATTRS.c.key == RESTART)
        )
        with storage.connection() as connection:
            first, size, restarts = connection.execute(query).one()
        return Elsewhere(int(first) + 1, int(size), int(restarts)) if size else None

    @wraps_storage_errors()
    def repetitions(self) -> Repetitions | None:
        """Return the trials that repeat good points under noise; None if there are none."""
        if (storage := self._sql) is None:
            trials = self._study.get_trials(deepcopy=False)
            found = [trial.number for trial in trials if REPEATS in trial.user_attrs]
            return Repetitions(min(found) + 1, len(found)) if found else None
        query = (
            select(func.min(_TRIALS.c.number), func.count())
            .join_from(_TRIALS, _ATTRS, _ATTRS.c.trial_id == _TRIALS.c.trial_id)
            .where(_TRIALS.c.study_id == self._study._study_id, _ATTRS.c.key == REPEATS)
        )
        with storage.connection() as connection:
            first, size = connection.execute(query).one()
        return Repetitions(int(first) + 1, int(size)) if size else None

    def _set_lessons(self, lessons: Sequence[Lesson]) -> None:
        """Store the earlier searches of this run; keep the weights of the same searches."""
        before = self.learned()
        if [lesson.search for lesson in lessons] == [lesson.search for lesson in before]:
            lessons = [
                Lesson(new.search, new.trials, old.weight if new.has_model else None, new.has_model)
                for new, old in zip(lessons, before, strict=True)
            ]
        if list(lessons) != before:
            self._write(lessons)

    def _note_strategy(self, trial_id: int, proposed: Proposed) -> None:
        """Store how the trial ``trial_id`` was proposed."""
        if proposed.restart:
            self._storage.set_trial_user_attr(trial_id, RESTART, proposed.restart)
        if proposed.repeats:
            self._storage.set_trial_user_attr(trial_id, REPEATS, True)
        sampler = self._study.sampler
        weights = sampler.learned if isinstance(sampler, Chooser) else ()
        lessons = self.learned() if len(weights) else []
        if len(lessons) != len(weights):
            return
        now = [
            Lesson(lesson.search, lesson.trials, round(float(weight), _DIGITS))
            for lesson, weight in zip(lessons, weights, strict=True)
        ]
        if now != lessons:
            self._write(now)

    def _write(self, lessons: Sequence[Lesson]) -> None:
        rows = [[each.search, each.trials, each.weight, each.has_model] for each in lessons]
        self._study.set_user_attr(LESSONS, rows)
