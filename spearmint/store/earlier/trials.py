"""Read the trials of a study from the tables of Optuna, without trusting their contents."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution, json_to_distribution
from optuna.storages._rdb import models
from optuna.study import StudyDirection
from optuna.trial import TrialState
from sqlalchemy import Connection, select

from spearmint.errors import InputError
from spearmint.store.sql.writes import GAP
from spearmint.transfer.earlier import EarlierSearch, EarlierTrial

_STUDIES: Any = models.StudyModel.__table__
_DIRECTIONS: Any = models.StudyDirectionModel.__table__
_TRIALS: Any = models.TrialModel.__table__
_VALUES: Any = models.TrialValueModel.__table__
_PARAMS: Any = models.TrialParamModel.__table__
_SYSTEM: Any = models.TrialSystemAttributeModel.__table__
TABLES = {t.name for t in (_STUDIES, _DIRECTIONS, _TRIALS, _VALUES, _PARAMS, _SYSTEM)}
"""Names of the tables that are read."""
# Of more complete trials, the best third of this number and others at random are read.
_MOST_TRIALS = 1200
_MOST_NAMED = 500


def read_names(connection: Connection) -> list[str]:
    """Return the names of all studies."""
    return [str(row[0]) for row in connection.execute(select(_STUDIES.c.study_name))]


def read_search(connection: Connection, study: str, label: str) -> EarlierSearch:
    """Return the study ``study``; messages name it ``label``.

    Raises:
        InputError: It has several objectives.
    """
    found = select(_STUDIES.c.study_id).where(_STUDIES.c.study_name == study)
    study_id = connection.execute(found).scalar_one()
    rows = connection.execute(
        select(_DIRECTIONS.c.direction).where(_DIRECTIONS.c.study_id == study_id)
    ).all()
    if len(rows) != 1:
        raise InputError(f"{label} has {len(rows)} objectives", "Name a search with one objective.")
    maximize = rows[0][0] == StudyDirection.MAXIMIZE
    known = _finite_values(connection, study_id)
    ids, values = np.array(list(known), dtype=np.int64), np.array(list(known.values()))
    if len(ids) > _MOST_TRIALS:
        from spearmint.gp.fit import subset  # imports scipy

        rng = np.random.default_rng(len(ids))
        ids = ids[subset(-values if maximize else values, _MOST_TRIALS, rng)]
    params = _params(connection, ids.tolist())
    outside = _infeasible(connection, ids.tolist())
    trials = [
        EarlierTrial(params[i], known[i], i not in outside) for i in ids.tolist() if i in params
    ]
    return EarlierSearch(
        name=label,
        maximize=maximize,
        trials=tuple(trials),
        n_complete=len(known),
        region=study.partition("@")[2],
    )


def _finite_values(connection: Connection, study_id: int) -> dict[int, float]:
    """Return the finite values of the complete trials of a study by id."""
    query = (
        select(_TRIALS.c.trial_id, _VALUES.c.value)
        .join_from(_TRIALS, _VALUES, _VALUES.c.trial_id == _TRIALS.c.trial_id)
        .where(
            _TRIALS.c.study_id == study_id,
            _TRIALS.c.state == TrialState.COMPLETE,
            _VALUES.c.objective == 0,
        )
        .order_by(_TRIALS.c.trial_id)
    )
    rows = connection.execute(query).all()
    return {int(i): float(v) for i, v in rows if isinstance(v, float | int) and math.isfinite(v)}


def _params(connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, float | str]]:
    """Return the parameters of trials by id."""
    found: dict[int, dict[str, float | str]] = {}
    choices: dict[str, tuple[str, ...] | None] = {}
    columns = (_PARAMS.c.trial_id, _PARAMS.c.param_name, _PARAMS.c.param_value)
    for start in range(0, len(ids), _MOST_NAMED):
        named = _PARAMS.c.trial_id.in_(ids[start : start + _MOST_NAMED])
        query = select(*columns, _PARAMS.c.distribution_json).where(named)
        for trial_id, name, value, text in connection.execute(query):
            if text not in choices:
                choices[text] = _choices(text)
            kept = _value(value, choices[text])
            if kept is not None:
                found.setdefault(int(trial_id), {})[str(name)] = kept
    return found


def _choices(text: str) -> tuple[str, ...] | None:
    """Return the texts of the choices of a category; None for a number."""
    distribution = json_to_distribution(text)
    if isinstance(distribution, CategoricalDistribution):
        return tuple(map(str, distribution.choices))
    return None


def _value(value: object, choices: Sequence[str] | None) -> float | str | None:
    if not isinstance(value, float | int) or not math.isfinite(value):
        return None
    if choices is None:
        return float(value)
    return choices[int(value)] if 0 <= value < len(choices) else None


def _infeasible(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Return the ids of the trials that violate a constraint."""
    found: set[int] = set()
    for start in range(0, len(ids), _MOST_NAMED):
        query = select(_SYSTEM.c.trial_id, _SYSTEM.c.value_json).where(
            _SYSTEM.c.trial_id.in_(ids[start : start + _MOST_NAMED]),
            _SYSTEM.c.key.startswith(GAP),
        )
        found |= {int(i) for i, text in connection.execute(query) if _is_above_0(text)}
    return found


def _is_above_0(text: str) -> bool:
    gap = json.loads(text)
    return not isinstance(gap, float | int) or not gap <= 0.0
