"""States and values of all trials of a study in memory: 10 bytes a trial instead of 5,000."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import ColumnElement, Connection, and_, select

from spearmint.choosers.selection import Outline
from spearmint.store.frozen_trials import EXCESS
from spearmint.store.sql.fast_reads import MOST_NAMED, BulkReadStorage, batched

_TRIALS: Any = models.TrialModel.__table__
_VALUES: Any = models.TrialValueModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__
_UNKNOWN = -1


class StoredOutline:
    """The outline of one study. Each update reads the new trials and the unfinished ones."""

    def __init__(self, storage: BulkReadStorage, study_id: int) -> None:
        self._storage = storage
        self._study_id = study_id
        self._states = np.empty(0, dtype=np.int8)
        self._values = np.empty(0)
        self._ended: dict[int, FrozenTrial] = {}  # of the last ``read``
        self._view: object | None = None  # of the last update

    def updated(self) -> Outline:
        """Return the outline of all trials that are stored now; of one view, read once."""
        view = self._storage.view
        if view is None or view is not self._view:
            self._update()
        self._view = view
        return Outline(
            self._states == TrialState.RUNNING.value,
            np.isin(self._states, [state.value for state in TrialState if state.is_finished()]),
            self._values,
        )

    def _update(self) -> None:
        unfinished = (TrialState.RUNNING.value, TrialState.WAITING.value)
        named = np.flatnonzero(np.isin(self._states, unfinished)).tolist()
        number = _TRIALS.c.number
        unknown = np.flatnonzero(self._states == _UNKNOWN)
        first = int(unknown[0]) if len(unknown) else len(self._states)
        with self._storage.connection() as connection:
            for some in batched(named, MOST_NAMED):
                self._read(connection, number.in_(some))
            self._read(connection, number >= first)

    def _read(self, connection: Connection, wanted: ColumnElement[bool]) -> None:
        """Read the states and values of the trials that satisfy ``wanted``."""
        first_value = and_(_VALUES.c.trial_id == _TRIALS.c.trial_id, _VALUES.c.objective == 0)
        is_outside = and_(_ATTRS.c.trial_id == _TRIALS.c.trial_id, _ATTRS.c.key == EXCESS)
        columns = (_TRIALS.c.number, _TRIALS.c.state, _VALUES.c.value, _VALUES.c.value_type)
        query = (
            select(*columns, _ATTRS.c.key)
            .outerjoin_from(_TRIALS, _VALUES, first_value)
            .outerjoin(_ATTRS, is_outside)
            .where(_TRIALS.c.study_id == self._study_id, _TRIALS.c.number.is_not(None), wanted)
        )
        rows = connection.execute(query).all()
        if not rows:
            return
        self._grow(max(row[0] for row in rows) + 1)
        numbers = np.array([row[0] for row in rows])
        self._states[numbers] = [row[1].value for row in rows]
        self._values[numbers] = [
            _value(value, kind) if state is TrialState.COMPLETE and outside is None else np.nan
            for _, state, value, kind, outside in rows
        ]

    def _grow(self, size: int) -> None:
        more = size - len(self._states)
        if more > 0:
            new = np.full(more, _UNKNOWN, dtype=np.int8)
            self._states = np.concatenate((self._states, new))
            self._values = np.concatenate((self._values, np.full(more, np.nan)))

    def read(self, numbers: Sequence[int]) -> list[FrozenTrial]:
        """Return the trials with these numbers, by number."""
        known = {number: self._ended[number] for number in numbers if number in self._ended}
        missing = [int(number) for number in numbers if number not in known]
        found = {t.number: t for t in self._storage.read_numbers(self._study_id, missing)}
        self._ended = known | {n: trial for n, trial in found.items() if trial.state.is_finished()}
        both = known | found
        return [both[number] for number in sorted(both)]


def _value(value: float | None, kind: models.TrialValueModel.TrialValueType | None) -> float:
    if kind is None:
        return np.nan
    return float(models.TrialValueModel.stored_repr_to_value(value, kind))
