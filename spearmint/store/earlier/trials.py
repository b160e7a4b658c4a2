"""Read the trials of a study from the tables of Optuna, without trusting their contents."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution, json_to_distribution
from optuna.storages._rdb import models
from optuna.study import StudyDirection
from optuna.trial import TrialState
from sqlalchemy import Connection, Select, select

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
MOST_BYTES = 64 * 2**20
"""Maximum size of what is kept of a database: four million values, without names and choices."""
_NUMBER = 8


class Rows:
    """Rows of one database, one at a time, and a limit of the memory for what is kept of them."""

    def __init__(self, connection: Connection) -> None:
        # A driver of a server would otherwise fetch all rows at once.
        self._connection = connection.execution_options(stream_results=True, max_row_buffer=100)
        self._left = MOST_BYTES

    def of(self, query: Select[Any]) -> Iterator[Any]:
        """Yield the rows of ``query``; stop at any time."""
        with self._connection.execute(query) as found:
            yield from found

    def keep(self, *cells: object) -> None:
        """Count cells that are kept. Raises InputError if they are too many or too long."""
        self._left -= sum(len(c) if isinstance(c, str | bytes) else _NUMBER for c in cells)
        if self._left < 0:
            raise InputError(
                f"it has more than {MOST_BYTES >> 20} MiB of names, values and choices",
                "Select one study by #STUDY at the end, or import its best trials instead.",
            )


def read_names(rows: Rows) -> list[str]:
    """Return the names of all studies."""
    names = []
    for (name,) in rows.of(select(_STUDIES.c.study_name)):
        rows.keep(name)
        names.append(str(name))
    return names


def read_search(rows: Rows, study: str, label: str) -> EarlierSearch:
    """Return the study ``study``; messages name it ``label``.

    Raises:
        InputError: It has several objectives, or what is kept of it needs too much memory.
    """
    found = select(_STUDIES.c.study_id).where(_STUDIES.c.study_name == study)
    study_id = int(next((row[0] for row in rows.of(found)), -1))  # deleted: without objectives
    direction = select(_DIRECTIONS.c.direction).where(_DIRECTIONS.c.study_id == study_id)
    directions = [row[0] for row in rows.of(direction.limit(_MOST_NAMED))]
    if len(directions) != 1:
        what = f"{label} has {len(directions)} objectives"
        raise InputError(what, "Name a search with one objective.")
    maximize = directions[0] == StudyDirection.MAXIMIZE
    ids, values = _finite_values(rows, study_id)
    n_complete = len(ids)
    if n_complete > _MOST_TRIALS:
        from spearmint.gp.fit import subset  # imports scipy

        rng = np.random.default_rng(n_complete)
        kept = subset(-values if maximize else values, _MOST_TRIALS, rng)
        ids, values = ids[kept], values[kept]
    params = _params(rows, ids.tolist())
    outside = _infeasible(rows, ids.tolist())
    trials = [
        EarlierTrial(params[i], value, i not in outside)
        for i, value in zip(ids.tolist(), values.tolist(), strict=True)
        if i in params
    ]
    return EarlierSearch(
        name=label,
        maximize=maximize,
        trials=tuple(trials),
        n_complete=n_complete,
        region=study.partition("@")[2],
    )


def _finite_values(rows: Rows, study_id: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the ids of the complete trials of a study, and their values if finite, ``(n,)``."""
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
    ids, values = array("q"), array("d")
    for trial_id, value in rows.of(query):
        if isinstance(value, float | int) and math.isfinite(value):
            rows.keep(trial_id, value)
            ids.append(int(trial_id))
            values.append(float(value))
    return np.array(ids, dtype=np.int64), np.array(values, dtype=np.float64)


def _params(rows: Rows, ids: Sequence[int]) -> dict[int, dict[str, float | str]]:
    """Return the parameters of trials by id."""
    found: dict[int, dict[str, float | str]] = {}
    choices: dict[str, tuple[str, ...] | None] = {}
    columns = (_PARAMS.c.trial_id, _PARAMS.c.param_name, _PARAMS.c.param_value)
    for start in range(0, len(ids), _MOST_NAMED):
        named = _PARAMS.c.trial_id.in_(ids[start : start + _MOST_NAMED])
        query = select(*columns, _PARAMS.c.distribution_json).where(named)
        for trial_id, name, value, text in rows.of(query):
            if text not in choices:
                rows.keep(text)
                choices[text] = _choices(text)
            kept = _value(value, choices[text])
            if kept is not None:
                rows.keep(name, value)
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


def _infeasible(rows: Rows, ids: Sequence[int]) -> set[int]:
    """Return the ids of the trials that violate a constraint."""
    found: set[int] = set()
    for start in range(0, len(ids), _MOST_NAMED):
        query = select(_SYSTEM.c.trial_id, _SYSTEM.c.value_json).where(
            _SYSTEM.c.trial_id.in_(ids[start : start + _MOST_NAMED]),
            _SYSTEM.c.key.startswith(GAP),
        )
        found |= {int(i) for i, text in rows.of(query) if _is_above_0(text)}
    return found


def _is_above_0(text: str) -> bool:
    gap = json.loads(text)
    return not isinstance(gap, float | int) or not gap <= 0.0
