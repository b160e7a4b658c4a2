"""States and trials by number or by their point, by SQL, without reading all trials."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages._rdb import models
from optuna.trial import TrialState as OptunaState
from sqlalchemy import Select, and_, func, or_, select

from spearmint.choosers.tree import Tree
from spearmint.model import Trial, TrialState
from spearmint.store.distributions import to_flat
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.frozen_trials import CONSTRAINTS, EXCESS, to_trial
from spearmint.store.sql.aggregates import Aggregates, stored_states

_TRIALS: Any = models.TrialModel.__table__
_PARAMS: Any = models.TrialParamModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__
_STEPS: Any = models.TrialIntermediateValueModel.__table__
_SYSTEM: Any = models.TrialSystemAttributeModel.__table__
_FIXED = "fixed_params"  # Optuna's attribute of a trial that was queued
_MOST_VALUES = 500  # in a statement


class Lookups(Aggregates):
    """The methods of :class:`spearmint.store.study.Study` that look up some trials.

    In a storage of Optuna without SQL they read all trials.
    """

    _distributions: dict[str, BaseDistribution]
    _tree: Tree | None

    @wraps_storage_errors()
    def states(self) -> dict[int, TrialState]:
        """Return the state of each trial by its id, sorted."""
        if (storage := self._sql) is None:
            return {trial.id: trial.state for trial in self.trials()}
        names = {stored: state for state, stored in stored_states().items()}
        query = select(_TRIALS.c.number, _TRIALS.c.state).where(self._whole_rows())
        paused: set[int] = set()
        with storage.connection() as connection:
            if self.experiment.fidelity is not None:
                at_rungs = select(_TRIALS.c.number).where(self._rows_in(TrialState.PAUSED))
                paused.update(connection.execute(at_rungs).scalars())
            rows = connection.execute(query.order_by(_TRIALS.c.number)).all()
        return {n + 1: TrialState.PAUSED if n in paused else names[state] for n, state in rows}

    @wraps_storage_errors()
    def some(self, ids: Sequence[int]) -> list[Trial]:
        """Return the trials with these ids, by id."""
        if (storage := self._sql) is None:
            return [trial for trial in self.trials() if trial.id in set(ids)]
        frozen = storage.read_numbers(self._study._study_id, [i - 1 for i in sorted(ids)])
        return [to_trial(self.experiment, trial) for trial in frozen]

    @wraps_storage_errors()
    def at(self, points: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Return the trials that have exactly one of ``points``, by element name, in any state."""
        points = [point for point in points if self._has_all(point)]  # as every trial has
        known = {frozenset(point.items()) for point in points}
        if not known:
            return []
        if (storage := self._sql) is None:
            trials = self.trials()
        else:
            query: Any = _at_values(self._study._study_id, self._distributions, points)
            with storage.connection() as connection:
                ids: Sequence[int] = connection.execute(query).scalars().all()
            # A proposal that a killed controller did not finish has some parameters only.
            frozen = [trial for trial in storage.read_trials(ids) if self._has_all(trial.params)]
            trials = [to_trial(self.experiment, trial) for trial in frozen]
        variables = self.experiment.variables
        return [t for t in trials if frozenset(to_flat(variables, t.params).items()) in known]

    def _has_all(self, params: Mapping[str, Any]) -> bool:
        """Return whether ``params``, by element name, are all that are active at their point."""
        if self._tree is not None:
            return self._tree.is_whole(params)
        return params.keys() >= self._distributions.keys()

    @wraps_storage_errors()
    def has_reports(self) -> bool:
        """Return whether any trial reported a value."""
        if (storage := self._sql) is None:
            return any(trial.reports for trial in self.trials())
        query = (
            select(_STEPS.c.trial_id)
            .join(_TRIALS, _TRIALS.c.trial_id == _STEPS.c.trial_id)
            .where(_TRIALS.c.study_id == self._study._study_id)
        )
        with storage.connection() as connection:
            return connection.execute(query.limit(1)).first() is not None

    @wraps_storage_errors()
    def feasible(self) -> tuple[int, int]:
        """Return the number of trials with values of constraints, and how many violate none."""
        if not self.experiment.constraints:
            return 0, 0
        if (storage := self._sql) is None:
            known = [trial for trial in self.trials() if trial.constraints]
            return len(known), sum(trial.is_feasible for trial in known)
        query = (
            select(_ATTRS.c.key, func.count())
            .join(_TRIALS, _TRIALS.c.trial_id == _ATTRS.c.trial_id)
            .where(self._whole_rows(), _ATTRS.c.key.in_((CONSTRAINTS, EXCESS)))
            .group_by(_ATTRS.c.key)
        )
        with storage.connection() as connection:
            rows = {str(key): int(n) for key, n in connection.execute(query).all()}
        limited = rows.get(CONSTRAINTS, 0)
        return limited, limited - rows.get(EXCESS, 0)

    @wraps_storage_errors()
    def fixed_points(self) -> list[dict[str, Any]]:
        """Return all points that were queued, also those that have a trial, by element name."""
        if (storage := self._sql) is None:
            trials = self._study.get_trials(deepcopy=False)
            return [t.system_attrs[_FIXED] for t in trials if _FIXED in t.system_attrs]
        query = (
            select(_SYSTEM.c.value_json)
            .join(_TRIALS, _TRIALS.c.trial_id == _SYSTEM.c.trial_id)
            .where(_TRIALS.c.study_id == self._study._study_id, _SYSTEM.c.key == _FIXED)
            .order_by(_TRIALS.c.number)
        )
        with storage.connection() as connection:
            return [json.loads(text) for text in connection.execute(query).scalars()]


def _at_values(
    study_id: int,
    distributions: Mapping[str, BaseDistribution],
    points: Sequence[Mapping[str, Any]],
) -> Select[tuple[int]]:
    """Return the query of the ids of trials whose parameters all have values of ``points``.

    A trial can have the values of several points. With very many values, it has more trials: those
    of any value of a parameter that has too many.
    """
    values: defaultdict[str, set[float]] = defaultdict(set)
    for point in points:
        for name, value in point.items():
            if name in distributions:
                values[name].add(distributions[name].to_internal_repr(value))
    name, value = _PARAMS.c.param_name, _PARAMS.c.param_value
    left, same = _MOST_VALUES, []
    for key, known in sorted(values.items(), key=lambda item: len(item[1])):
        is_listed = len(known) <= left
        left -= len(known) if is_listed else 0
        same.append(and_(name == key, value.in_(known)) if is_listed else name == key)
    least = min((len(point) for point in points if point), default=1)
    ids = select(_PARAMS.c.trial_id).where(or_(*same) if same else name.is_(None))
    ids = ids.group_by(_PARAMS.c.trial_id).having(func.count() >= least)
    return select(_TRIALS.c.trial_id).where(
        _TRIALS.c.study_id == study_id,
        _TRIALS.c.state != OptunaState.WAITING,
        _TRIALS.c.trial_id.in_(ids),
    )
