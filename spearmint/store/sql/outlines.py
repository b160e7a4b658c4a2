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
from spearmint.store.sql.fast_reads import MOST_NAMED, BulkReadStorage, batched, named

_TRIALS: Any = models.TrialModel.__table__
_VALUES: Any = models.TrialValueModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__
_UNKNOWN = -1
_UNFINISHED = (TrialState.RUNNING.value, TrialState.WAITING.value)


class StoredOutline:
    """The outline of one study. Each update reads the new trials and the unfinished ones."""

    def __init__(self, storage: BulkReadStorage, study_id: int) -> None:
        self._storage = storage
        self._study_id = study_id
        self._states = np.empty(0, dtype=np.int8)
        self._values = np.empty(0)
        self._ended: dict[int, FrozenTrial] = {}  # of the last ``read``
        self._running: dict[int, FrozenTrial] = {}  # that were read
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
        known = np.isin(self._states, _UNFINISHED)
        unknown = np.flatnonzero(self._states == _UNKNOWN)
        first = int(unknown[0]) if len(unknown) else len(self._states)
        with self._storage.connection() as connection:
            now = self._unfinished(connection)
            numbers = np.fromiter(now, dtype=np.int64)
            before = numbers[numbers < first]
            self._states[before] = [now[number].value for number in before.tolist()]
            known[before] = False
            for some in batched(np.flatnonzero(known).tolist(), MOST_NAMED):  # that ended
                self._read(connection, named(_TRIALS.c.number, some))
            self._read(connection, _TRIALS.c.number >= first)

    def _unfinished(self, connection: Connection) -> dict[int, TrialState]:
        """Return the states of the running and queued trials by number."""
        query = select(_TRIALS.c.number, _TRIALS.c.state).where(
            _TRIALS.c.study_id == self._study_id,
            _TRIALS.c.number.is_not(None),
            _TRIALS.c.state.in_((TrialState.RUNNING, TrialState.WAITING)),
        )
        return {int(number): state for number, state in connection.execute(query)}

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
        known |= self._unchanged([number for number in numbers if number in self._running])
        missing = [int(number) for number in numbers if number not in known]
        found = {t.number: t for t in self._storage.read_numbers(self._study_id, missing)}
        both = known | found
        self._ended = {n: trial for n, trial in both.items() if trial.state.is_finished()}
        self._running |= {n: t for n, t in found.items() if t.state is TrialState.RUNNING}
        return [both[number] for number in sorted(both)]

    def _unchanged(self, numbers: Sequence[int]) -> dict[int, FrozenTrial]:
        """Return those of the last running trials that still run with no attribute or parameter.

        A proposal of Optuna gets its parameters one by one, and a trial with rungs has them in an
        attribute.
        """
        some = [t for n in numbers if not (t := self._running[n]).user_attrs]
        if not some:
            return {}
        sizes = self._storage.read_sizes([trial._trial_id for trial in some])
        same = {t.number: t for t in some if sizes.get(t._trial_id) == (len(t.params), 0)}
        ends = self._states[list(self._running)] != TrialState.RUNNING.value
        for number in [n for n, has_ended in zip(self._running, ends, strict=True) if has_ended]:
            del self._running[number]
        return same


def _value(value: float | None, kind: models.TrialValueModel.TrialValueType | None) -> float:
    if kind is None:
        return np.nan
    return float(models.TrialValueModel.stored_repr_to_value(value, kind))
