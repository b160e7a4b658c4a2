"""Store trials and their values in few statements: 2 ms for each instead of 20 ms.

Optuna reads each parameter before it writes it, and makes one SQLAlchemy object for each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from optuna.distributions import distribution_to_json
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import Connection, Integer, bindparam, delete, func, insert, literal, select, update

_STUDIES: Any = models.StudyModel.__table__
_TRIALS: Any = models.TrialModel.__table__
_PARAMS: Any = models.TrialParamModel.__table__
_VALUES: Any = models.TrialValueModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__
_SYSTEM: Any = models.TrialSystemAttributeModel.__table__
_STEPS: Any = models.TrialIntermediateValueModel.__table__

_STUDY = bindparam("study", type_=Integer)
_LOCKED_STUDY = select(_STUDIES.c.study_id).where(_STUDIES.c.study_id == _STUDY).with_for_update()
_NEXT = func.coalesce(func.max(_TRIALS.c.number), -1) + 1
_NEXT_NUMBER = select(_NEXT).where(_TRIALS.c.study_id == _STUDY)
_NEW_TRIAL = (
    insert(_TRIALS)
    .from_select(
        ("study_id", "number", "state", "datetime_start"),
        select(
            _STUDY,
            _NEXT,
            literal(TrialState.RUNNING, _TRIALS.c.state.type),
            bindparam("start", type_=_TRIALS.c.datetime_start.type),
        ).where(_TRIALS.c.study_id == _STUDY),
    )
    .returning(_TRIALS.c.trial_id, _TRIALS.c.number)
)
_NEW_PARAMS, _NEW_VALUES, _NEW_STEPS = insert(_PARAMS), insert(_VALUES), insert(_STEPS)
_TRIAL = bindparam("trial", type_=Integer)
_RUNS = (_TRIALS.c.trial_id == _TRIAL) & (_TRIALS.c.state == TrialState.RUNNING)
# Optuna locks the same row, so that the state cannot change before the end.
_LOCKED_RUNNING = select(_TRIALS.c.trial_id).where(_RUNS).with_for_update()
_END = (
    update(_TRIALS)
    .where(_RUNS)
    .values(
        state=TrialState.COMPLETE,
        datetime_complete=bindparam("end", type_=_TRIALS.c.datetime_complete.type),
    )
)
_SOME_STEPS = bindparam("steps", type_=Integer, expanding=True)
_FORGET_STEPS = delete(_STEPS).where(_STEPS.c.trial_id == _TRIAL, _STEPS.c.step.in_(_SOME_STEPS))

GAP = "constraints:"
"""Start of the system attributes in which Optuna stores constraints."""


def is_plain(trial: FrozenTrial) -> bool:
    """Return whether ``trial`` runs and has nothing but parameters."""
    more = trial.values or trial.user_attrs or trial.system_attrs or trial.intermediate_values
    return trial.state is TrialState.RUNNING and not more


def insert_running(connection: Connection, study_id: int, trial: FrozenTrial) -> FrozenTrial:
    """Store a trial for which ``is_plain`` is true; return it with its number and id."""
    start = trial.datetime_start or datetime.now()
    trial_id, number = _insert_trial(connection, study_id, _utc(start))
    if trial.params:
        connection.execute(_NEW_PARAMS, [*_param_rows(trial_id, trial)])
    return FrozenTrial(
        number=number,
        state=trial.state,
        value=None,
        datetime_start=start,
        datetime_complete=None,
        params=dict(trial.params),
        distributions=dict(trial.distributions),
        user_attrs={},
        system_attrs={},
        intermediate_values={},
        trial_id=trial_id,
    )


def _insert_trial(connection: Connection, study_id: int, start: datetime) -> tuple[int, int]:
    """Store a running trial without parameters; return its id and number."""
    dialect = connection.dialect
    if dialect.name != "sqlite":  # which has one writer at a time
        # Optuna locks the same row, so that two processes never use one number.
        connection.execute(_LOCKED_STUDY, {"study": study_id})
    if dialect.insert_returning:
        row = connection.execute(_NEW_TRIAL, {"study": study_id, "start": start}).one()
        return int(row.trial_id), int(row.number)
    new = insert(_TRIALS).values(study_id=study_id, state=TrialState.RUNNING, datetime_start=start)
    key: Any = connection.execute(new).inserted_primary_key
    trial_id = int(key[0])
    number = int(connection.execute(_NEXT_NUMBER, {"study": study_id}).scalar_one())
    ours = _TRIALS.c.trial_id == trial_id
    connection.execute(update(_TRIALS).where(ours).values(number=number))
    return trial_id, number


def _param_rows(trial_id: int, trial: FrozenTrial) -> list[dict[str, Any]]:
    return [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": trial.distributions[name].to_internal_repr(value),
            "distribution_json": distribution_to_json(trial.distributions[name]),
        }
        for name, value in trial.params.items()
    ]


def complete(
    connection: Connection,
    trial_id: int,
    values: Sequence[float],
    attributes: Mapping[str, Any],
    gaps: Mapping[str, float],
) -> None:
    """Store the values, none of which is NaN, user attributes and constraints of a running trial.

    Raises:
        UpdateFinishedTrialError: The trial does not run.
    """
    end = {"trial": trial_id, "end": _utc(datetime.now())}
    if not connection.execute(_END, end).rowcount:
        raise UpdateFinishedTrialError(f"the trial with id {trial_id} does not run")
    rows = []
    for objective, value in enumerate(values):
        stored, kind = models.TrialValueModel.value_to_stored_repr(value)
        row = {"trial_id": trial_id, "objective": objective, "value": stored, "value_type": kind}
        rows.append(row)
    connection.execute(_NEW_VALUES, rows)
    _set(connection, _ATTRS, trial_id, attributes)
    _set(connection, _SYSTEM, trial_id, {f"{GAP}{name}": gap for name, gap in gaps.items()})


def report(connection: Connection, trial_id: int, values: Mapping[int, float]) -> None:
    """Store intermediate values of a running trial, by step, and replace earlier ones.

    Raises:
        UpdateFinishedTrialError: The trial does not run.
    """
    if connection.execute(_LOCKED_RUNNING, {"trial": trial_id}).first() is None:
        raise UpdateFinishedTrialError(f"the trial with id {trial_id} does not run")
    connection.execute(_FORGET_STEPS, {"trial": trial_id, "steps": list(values)})
    to_stored = models.TrialIntermediateValueModel.intermediate_value_to_stored_repr
    rows: list[dict[str, Any]] = []
    for step, value in values.items():
        stored, kind = to_stored(value)
        row = {"step": step, "intermediate_value": stored, "intermediate_value_type": kind}
        rows.append({"trial_id": trial_id, **row})
    connection.execute(_NEW_STEPS, rows)


def _set(connection: Connection, table: Any, trial_id: int, content: Mapping[str, Any]) -> None:
    """Store attributes of a trial in ``table``."""
    if not content:
        return
    # A controller that was killed can have stored them without the state.
    known = (table.c.trial_id == trial_id) & table.c.key.in_(list(content))
    connection.execute(delete(table).where(known))
    rows = [
        {"trial_id": trial_id, "key": key, "value_json": json.dumps(each)}
        for key, each in content.items()
    ]
    connection.execute(insert(table), rows)


def _utc(local: datetime) -> datetime:
    """Return a naive local time as the naive UTC that Optuna 5 stores."""
    return local.astimezone(UTC).replace(tzinfo=None)
