"""Counts and the best trials of a study by SQL, without reading all trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import optuna
from optuna.storages import BaseStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState
from sqlalchemy import ColumnElement, Float, and_, case, func, or_, select
from sqlalchemy import cast as sql_cast

from spearmint.choosers.rungs import RUNGS
from spearmint.model import Experiment, Trial, TrialState, leading, pareto_front, ranking
from spearmint.pareto import front
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.frozen_trials import EXCESS, SECONDS, STATES, to_trial
from spearmint.store.sql.fast_reads import BulkReadStorage
from spearmint.store.sql.whole import WholeTrials

_TRIALS: Any = models.TrialModel.__table__
_VALUES: Any = models.TrialValueModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__


class Aggregates:
    """The methods of :class:`spearmint.store.study.Study` that read few trials.

    In a storage of Optuna without SQL they read all trials.
    """

    experiment: Experiment
    _storage: BaseStorage
    _study: optuna.Study
    _whole: WholeTrials

    def trials(self) -> list[Trial]:
        """Return all trials by id."""
        raise NotImplementedError

    def _is_whole(self, trial: FrozenTrial) -> bool:
        raise NotImplementedError

    @wraps_storage_errors()
    def counts(self) -> dict[TrialState, int]:
        """Return the number of trials in each state."""
        if (storage := self._sql) is None:
            states = [trial.state for trial in self.trials()]
            return {state: states.count(state) for state in TrialState}
        query = select(_TRIALS.c.state, func.count()).where(self._whole_rows())
        with storage.connection() as connection:
            found = connection.execute(query.group_by(_TRIALS.c.state)).all()
        rows = {state: int(n) for state, n in found}
        counts = {state: rows.get(stored, 0) for state, stored in stored_states().items()}
        paused = self._n_paused(storage)
        running = counts[TrialState.RUNNING] - paused
        return {**counts, TrialState.RUNNING: running, TrialState.PAUSED: paused}

    def _n_paused(self, storage: BulkReadStorage) -> int:
        if self.experiment.fidelity is None:
            return 0
        rows = and_(self._whole_rows(OptunaState.RUNNING), _is_paused())
        query = select(func.count()).select_from(_TRIALS).where(rows)
        with storage.connection() as connection:
            return int(connection.execute(query).scalar_one())

    @wraps_storage_errors()
    def has_queued(self) -> bool:
        """Return whether a queued point has no trial yet."""
        waiting = OptunaState.WAITING
        if (storage := self._sql) is None:
            return bool(self._study.get_trials(deepcopy=False, states=(waiting,)))
        query = select(_TRIALS.c.trial_id).where(
            _TRIALS.c.study_id == self._study._study_id, _TRIALS.c.state == waiting
        )
        with storage.connection() as connection:
            return connection.execute(query.limit(1)).first() is not None

    @wraps_storage_errors()
    def seconds(self) -> float:
        """Return the total seconds of all trials that ended."""
        if (storage := self._sql) is None:
            return sum(trial.seconds or trial.earlier_s for trial in self.trials())
        known = and_(_ATTRS.c.key == SECONDS, _ATTRS.c.value_json != "null")
        query = select(func.sum(sql_cast(_ATTRS.c.value_json, Float)))
        query = query.join(_TRIALS, _TRIALS.c.trial_id == _ATTRS.c.trial_id)
        with storage.connection() as connection:
            total = connection.execute(query.where(known, self._whole_rows())).scalar()
        return float(total or 0.0)

    @wraps_storage_errors()
    def best(self, most: int | None = 1, *, feasible: bool = True) -> list[Trial]:
        """Return at most ``most`` complete trials, best first, as :func:`ranking` does.

        With ``feasible``, only trials that violate no constraint. With several objectives, the
        trials of the Pareto front.
        """
        if self.experiment.has_front:
            return self.front()[:most] if feasible else self._nearest(most)
        maximize = self.experiment.maximize
        if (storage := self._sql) is None:
            ranked = ranking(self.trials(), maximize=maximize)
            return [trial for trial in ranked if trial.is_feasible or not feasible][:most]
        kind, value = _VALUES.c.value_type, _VALUES.c.value
        is_finite = kind == models.TrialValueModel.TrialValueType.FINITE
        rows, excess = select(_TRIALS.c.trial_id), []
        if self.experiment.constraints:
            outside = and_(_ATTRS.c.trial_id == _TRIALS.c.trial_id, _ATTRS.c.key == EXCESS)
            rows = rows.outerjoin_from(_TRIALS, _ATTRS, outside)
            rows = rows.where(_ATTRS.c.key.is_(None)) if feasible else rows
            excess = [func.coalesce(sql_cast(_ATTRS.c.value_json, Float), 0.0)]
        query = (
            rows.join(_VALUES, _VALUES.c.trial_id == _TRIALS.c.trial_id)
            .where(self._whole_rows(OptunaState.COMPLETE), _VALUES.c.objective == 0)
            .order_by(
                *excess,
                case((is_finite, 0), else_=1),
                value.desc() if maximize else value.asc(),
                _TRIALS.c.number,
            )
            .limit(most)
        )
        found = ranking(self._read(storage, query), maximize=maximize)
        return found[:most]

    @wraps_storage_errors()
    def front(self) -> list[Trial]:
        """Return the Pareto front of several objectives, by the first one; empty with one."""
        if not self.experiment.has_front:
            return []
        if (storage := self._sql) is None:
            return pareto_front(self.trials())
        goals = self.experiment.objectives
        outside = and_(_ATTRS.c.trial_id == _TRIALS.c.trial_id, _ATTRS.c.key == EXCESS)
        columns = (_TRIALS.c.number, _TRIALS.c.trial_id, _VALUES.c.objective, _VALUES.c.value)
        query = (
            select(*columns, _VALUES.c.value_type)
            .join(_VALUES, _VALUES.c.trial_id == _TRIALS.c.trial_id)
            .outerjoin(_ATTRS, outside)
            .where(self._whole_rows(OptunaState.COMPLETE), _ATTRS.c.key.is_(None))
            .order_by(_TRIALS.c.number, _VALUES.c.objective)
        )
        with storage.connection() as connection:
            rows = connection.execute(query).all()
        known: dict[int, list[float]] = {}
        for _, trial_id, objective, value, kind in rows:
            stored = models.TrialValueModel.stored_repr_to_value(value, kind)
            known.setdefault(trial_id, []).append(goals[objective].loss(stored))
        ids, losses = list(known), [tuple(each) for each in known.values()]
        frozen = storage.read_trials([ids[i] for i in front(losses)])
        return pareto_front([to_trial(self.experiment, trial) for trial in frozen])

    def _nearest(self, most: int | None) -> list[Trial]:
        """Return the front, or without a feasible trial the ones with the smallest excess."""
        return self.front()[:most] or leading(self.trials(), maximize=False)[:most]

    @wraps_storage_errors()
    def finished_after(self, trial_id: int) -> int:
        """Return the number of complete, pruned and paused trials with an id above ``trial_id``."""
        done = (OptunaState.COMPLETE, OptunaState.PRUNED)
        if (storage := self._sql) is None:
            states = [*(STATES[state] for state in done), TrialState.PAUSED]
            return sum(trial.state in states for trial in self.trials() if trial.id > trial_id)
        has_ended = _TRIALS.c.state.in_(done)
        if self.experiment.fidelity is not None:
            has_ended = or_(has_ended, and_(_TRIALS.c.state == OptunaState.RUNNING, _is_paused()))
        later = and_(has_ended, _TRIALS.c.number >= trial_id)
        query = select(func.count()).select_from(_TRIALS).where(self._whole_rows(), later)
        with storage.connection() as connection:
            return int(connection.execute(query).scalar_one())

    @wraps_storage_errors()
    def last(self, state: TrialState, most: int | None = None) -> list[Trial]:
        """Return the last ``most`` trials in ``state`` by id; all of them if it is None."""
        if (storage := self._sql) is None:
            found = [trial for trial in self.trials() if trial.state is state]
            return found if most is None else found[max(0, len(found) - most) :]
        rows = self._rows_in(state)
        query = select(_TRIALS.c.trial_id).where(rows).order_by(_TRIALS.c.number.desc())
        return self._read(storage, query.limit(most))

    @property
    def _sql(self) -> BulkReadStorage | None:
        backend = getattr(self._storage, "_backend", self._storage)
        return backend if isinstance(backend, BulkReadStorage) else None

    def _whole_rows(self, state: OptunaState | None = None) -> ColumnElement[bool]:
        """Return the condition of the trials in ``state`` that have all parameters."""
        storage = cast("BulkReadStorage", self._sql)
        self._whole.forget_after(storage.rollbacks)
        with storage.connection() as connection:
            if state is None:
                return self._whole.started(connection)
            return self._whole.in_state(state, connection)

    def _rows_in(self, state: TrialState) -> ColumnElement[bool]:
        """Return the condition of the trials in ``state``; paused ones are stored as running."""
        if state is TrialState.PAUSED:
            return and_(self._whole_rows(OptunaState.RUNNING), _is_paused())
        rows = self._whole_rows(stored_states()[state])
        if state is TrialState.RUNNING and self.experiment.fidelity is not None:
            return and_(rows, ~_is_paused())
        return rows

    def _read(self, storage: BulkReadStorage, query: Any) -> list[Trial]:
        """Return the trials whose ids ``query`` selects, by id."""
        with storage.connection() as connection:
            ids: Sequence[int] = connection.execute(query).scalars().all()
        frozen: list[FrozenTrial] = storage.read_trials(ids)
        # Another process can have ended one that is not, since the query was made.
        return [to_trial(self.experiment, trial) for trial in frozen if self._is_whole(trial)]


def _is_paused() -> ColumnElement[bool]:
    """Return the condition of the running trials that wait at a rung."""
    marks = and_(_ATTRS.c.key == RUNGS, _ATTRS.c.value_json.contains('"paused": true'))
    paused: ColumnElement[bool] = _TRIALS.c.trial_id.in_(select(_ATTRS.c.trial_id).where(marks))
    return paused


def stored_states() -> dict[TrialState, OptunaState]:
    """Return Optuna's state of each state; a paused trial is stored as a running one."""
    return {TrialState.RUNNING: OptunaState.RUNNING} | {ours: o for o, ours in STATES.items()}
