"""The trials, in SQL, that have all parameters that are active at their points: whole trials.

A killed controller leaves trials that lack some, and other programs can store some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages._rdb import models
from optuna.trial import TrialState
from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, or_, select, true

from spearmint.choosers.tree import Tree
from spearmint.conditions import Condition
from spearmint.store.sql.fast_reads import MOST_NAMED, batched, named

_TRIALS: Any = models.TrialModel.__table__
_PARAMS: Any = models.TrialParamModel.__table__
_ENDED = tuple(state for state in TrialState if state.is_finished())


class WholeTrials:
    """Conditions of the whole trials of one study.

    They name the ended trials that are not whole, of which there are few or none: to find them
    takes as long as a query of all parameters, but an ended trial does not change, so they are only
    searched when the number of ended trials has changed.
    """

    def __init__(self, study_id: int, names: Sequence[str], tree: Tree | None) -> None:
        self._study_id, self._names, self._tree = study_id, list(names), tree
        self._rollbacks = 0
        self._forget()

    def _forget(self) -> None:
        self._lacking: list[int] = []  # ids of the ended trials that are not whole
        self._n_ended = 0  # trials that had ended when they were searched,
        self._open: set[int] = set()  # those that had not,
        self._last = -1  # and the last of both

    def forget_after(self, rollbacks: int) -> None:
        """Search all trials again if ``rollbacks`` is not the number of the last call."""
        if rollbacks != self._rollbacks:
            self._rollbacks = rollbacks
            self._forget()

    def in_state(self, state: TrialState, connection: Connection) -> ColumnElement[bool]:
        """Return the condition of the whole trials in ``state``."""
        ours = and_(_TRIALS.c.study_id == self._study_id, _TRIALS.c.state == state)
        if state in _ENDED:
            return and_(ours, self._has_ended_whole(connection))
        # Few: one search of the index for each.
        some = _PARAMS.c.trial_id.in_(select(_TRIALS.c.trial_id).where(ours))
        return and_(ours, _TRIALS.c.trial_id.in_(self._ids(some)))

    def started(self, connection: Connection) -> ColumnElement[bool]:
        """Return the condition of the whole trials in any state but that of queued points."""
        ours = _TRIALS.c.study_id == self._study_id
        ended = and_(_TRIALS.c.state.in_(_ENDED), self._has_ended_whole(connection))
        return and_(ours, or_(ended, self.in_state(TrialState.RUNNING, connection)))

    def _has_ended_whole(self, connection: Connection) -> ColumnElement[bool]:
        """Return the condition, of an ended trial, that it is whole."""
        ours = _TRIALS.c.study_id == self._study_id
        ended = and_(ours, _TRIALS.c.state.in_(_ENDED))
        size = int(connection.execute(select(func.count()).where(ended)).scalar_one())
        if size != self._n_ended:
            last = connection.execute(select(func.max(_TRIALS.c.trial_id)).where(ours)).scalar()
            still = select(_TRIALS.c.trial_id).where(ours, _TRIALS.c.state.not_in(_ENDED))
            unfinished = set(connection.execute(still).scalars())
            self._find_lacking(connection, ended, self._open - unfinished)
            self._n_ended, self._open, self._last = size, unfinished, int(last or 0)
        if len(self._lacking) > MOST_NAMED:
            whole: ColumnElement[bool] = _TRIALS.c.trial_id.in_(self._ids())
            return whole
        return ~named(_TRIALS.c.trial_id, self._lacking)

    def _find_lacking(
        self, connection: Connection, ended: ColumnElement[bool], some: set[int]
    ) -> None:
        """Search the trials that are new or in ``some`` for trials that are not whole."""
        if self._last < 0:
            parts: list[tuple[ColumnElement[bool], ColumnElement[bool]]] = [(true(), true())]
        else:
            trial, param = _TRIALS.c.trial_id, _PARAMS.c.trial_id
            parts = [(trial > self._last, param > self._last)]
            groups = batched(sorted(some), MOST_NAMED)
            parts += [(named(trial, group), named(param, group)) for group in groups]
        for trials, params in parts:
            lacks = ~_TRIALS.c.trial_id.in_(self._ids(params))
            query = select(_TRIALS.c.trial_id).where(ended, trials, lacks).limit(MOST_NAMED + 1)
            self._lacking += connection.execute(query).scalars().all()

    def _ids(self, *some: ColumnElement[bool]) -> Select[tuple[int]]:
        """Return the query of the ids of all whole trials, or of those with ``some`` parameters."""
        known = select(_PARAMS.c.trial_id).where(_PARAMS.c.param_name.in_(self._names), *some)
        return known.group_by(_PARAMS.c.trial_id).having(is_whole(self._names, self._tree))


def is_whole(names: Sequence[str], tree: Tree | None) -> ColumnElement[bool]:
    """Return the condition for a group of rows: the parameters of a trial that are in ``names``."""
    if tree is None:
        return func.count() == len(names)
    always = [name for name in names if name not in tree.requirements]
    # The number of rows that are always there, and one condition for each conditional parameter.
    required = func.sum(case((_PARAMS.c.param_name.in_(always), 1), else_=0)) == len(always)
    conditional = [
        or_(_any(_PARAMS.c.param_name == name), *(~_holds(c, tree.distributions) for c in needed))
        for name, needed in tree.requirements.items()
    ]
    return and_(required, *conditional)


def _any(row: ColumnElement[bool]) -> ColumnElement[bool]:
    return func.max(case((row, 1), else_=0)) == 1


def _holds(
    condition: Condition, distributions: Mapping[str, BaseDistribution]
) -> ColumnElement[bool]:
    parent = distributions[condition.parent]
    stored = [parent.to_internal_repr(value) for value in condition.values]
    named = _PARAMS.c.param_name == condition.parent
    return _any(and_(named, _PARAMS.c.param_value.in_(stored)))
