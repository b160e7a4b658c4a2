"""The door to Optuna: one study per experiment holds every trial and its state."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, RDBStorage, get_storage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import TrialState as OptunaState
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from spearmint.choosers.history import ABANDONED
from spearmint.config import describe
from spearmint.errors import InputError, StorageError, StudyMismatch
from spearmint.model import Experiment, Params, Result, Trial, TrialState
from spearmint.space import distributions, to_flat, to_params
from spearmint.sqlite import TrialConnection

P = ParamSpec("P")
R = TypeVar("R")

_VARIABLES = "spearmint:variables"
_OWNER = "spearmint:owner"
_TOKEN = "spearmint:token"  # noqa: S105 - names the study, opens nothing
_REASON, _TAIL, _SECONDS, _LOST = "reason", "tail", "seconds", "lost"
_IMPORTED = "imported"
_MOST_REPORTS = 200  # stored for a trial; a longer curve is thinned evenly
_LOCK_WAIT_S = 60
_SIGNS_OF_A_FULL_DISK = ("disk is full", "disk I/O error", "No space left", "unable to open")


def _door(function: Callable[P, R]) -> Callable[P, R]:
    """Make every failure of the database a StorageError."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with _translated():
            return function(*args, **kwargs)

    return guarded


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        cause = error.__cause__ or error.__context__ or error
        text = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        fix = "Finished trials are safe; mend this and run the same command to go on."
        if any(sign in text for sign in _SIGNS_OF_A_FULL_DISK):
            fix = "Free some space, then run the same command: finished trials are safe."
        raise StorageError(f"the database of trials failed: {text}", fix) from error


class Study:
    """The trials of one experiment, in an Optuna study that any Optuna tool can open."""

    def __init__(
        self, experiment: Experiment, url: str, storage: BaseStorage, study: optuna.Study
    ) -> None:
        self.experiment = experiment
        self.url = url
        self._storage = storage
        self._study = study
        self._distributions = distributions(experiment.variables)
        self._token = str(study.user_attrs.get(_TOKEN, study.study_name))

    def use(self, sampler: BaseSampler) -> None:
        """Let ``sampler`` propose from now on."""
        self._study.sampler = sampler

    @property
    @_door
    def owner(self) -> dict[str, str] | None:
        """Where the study is run from, as ``set_owner`` stored it."""
        owner: dict[str, str] | None = self._study.user_attrs.get(_OWNER)
        return owner

    @_door
    def set_owner(self, owner: dict[str, str]) -> None:
        """Store where the study is run from."""
        self._study.set_user_attr(_OWNER, owner)

    def key(self, trial: Trial) -> str:
        """Return a digest that no other trial has: of the study, the number and the parameters.

        A result file that carries it is of this trial, whatever else its folder was used for.
        """
        content = json.dumps([self._token, trial.id, trial.params], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @_door
    def enqueue_seed_points(self) -> None:
        """Queue the seed points of config.pb that were never queued."""
        for point in self.experiment.seed_points:
            flat = to_flat(self.experiment.variables, point)
            self._study.enqueue_trial(flat, skip_if_exists=True)

    @_door
    def ask(self) -> Trial:
        """Return a new running trial, proposed by the sampler or a seed point."""
        try:
            asked = self._study.ask(self._distributions)
        except (ImportError, NotImplementedError, TypeError, ValueError) as error:
            sampler = type(self._study.sampler).__name__
            raise InputError(
                f"{sampler} cannot propose for this config.pb: {error}",
                "Choose another --method.",
            ) from error
        params = to_params(self.experiment.variables, asked.params)
        return Trial(id=asked.number + 1, state=TrialState.RUNNING, params=params)

    @_door
    def complete(self, trial: Trial, result: Result) -> Trial:
        """Store a finished trial; its ``result`` must have a value."""
        storage_id = self._storage_id(trial)
        if result.seconds is not None:
            self._storage.set_trial_user_attr(storage_id, _SECONDS, result.seconds)
        for step, value in _thinned(sorted(result.reports.items())):
            self._storage.set_trial_intermediate_value(storage_id, step, value)
        self._study.tell(trial.id - 1, result.value)
        return replace(
            trial,
            state=TrialState.COMPLETE,
            value=result.value,
            seconds=result.seconds,
            reports=result.reports,
        )

    @_door
    def add_complete(
        self, params: Params, value: float, *, source: str, seconds: float | None = None
    ) -> None:
        """Store a trial that was evaluated elsewhere; ``source`` says where."""
        attrs: dict[str, Any] = {_IMPORTED: source}
        if seconds is not None:
            attrs[_SECONDS] = seconds
        self._study.add_trial(
            create_trial(
                params=to_flat(self.experiment.variables, params),
                distributions=self._distributions,
                value=value,
                user_attrs=attrs,
            )
        )

    @_door
    def break_(self, trial: Trial, result: Result, tail: str) -> Trial:
        """Store a trial that has no value, with the reason and the end of its output."""
        storage_id = self._storage_id(trial)
        attrs = {_REASON: result.reason, _TAIL: tail, _SECONDS: result.seconds}
        for key, value in attrs.items():
            self._storage.set_trial_user_attr(storage_id, key, value)
        self._study.tell(trial.id - 1, state=OptunaState.FAIL)
        return replace(
            trial,
            state=TrialState.BROKEN,
            reason=result.reason,
            tail=tail,
            seconds=result.seconds,
        )

    @_door
    def add_loss(self, trial: Trial) -> Trial:
        """Count one more job of ``trial`` that vanished without a result."""
        self._storage.set_trial_user_attr(self._storage_id(trial), _LOST, trial.lost + 1)
        return replace(trial, lost=trial.lost + 1)

    @_door
    def abandon_unproposed(self) -> None:
        """End trials whose proposal a killed controller never finished; queue their seed again."""
        for frozen in self._frozen(OptunaState.RUNNING):
            if not self._is_whole(frozen):
                seed = frozen.system_attrs.get("fixed_params")
                if seed:
                    self._study.enqueue_trial(seed)
                self._storage.set_trial_user_attr(frozen._trial_id, ABANDONED, True)
                self._study.tell(frozen.number, state=OptunaState.FAIL)

    @_door
    def trials(self) -> list[Trial]:
        """Return all trials by id."""
        return [self._trial(frozen) for frozen in self._frozen() if self._is_whole(frozen)]

    @_door
    def span(self) -> tuple[datetime | None, datetime | None]:
        """Return when the first trial started and the last one ended, in local time."""
        frozen = self._frozen()
        starts = [trial.datetime_start for trial in frozen if trial.datetime_start]
        ends = [trial.datetime_complete for trial in frozen if trial.datetime_complete]
        return min(starts, default=None), max(ends, default=None)

    @_door
    def running(self) -> list[Trial]:
        """Return the trials without an end, by id."""
        frozen = self._frozen(OptunaState.RUNNING)
        return [self._trial(trial) for trial in frozen if self._is_whole(trial)]

    def _frozen(self, *states: OptunaState) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False, states=states or None)

    def _is_whole(self, frozen: FrozenTrial) -> bool:
        waiting = frozen.state is OptunaState.WAITING
        return not waiting and frozen.params.keys() >= self._distributions.keys()

    def _storage_id(self, trial: Trial) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(
            self._study._study_id, trial.id - 1
        )

    def _trial(self, frozen: FrozenTrial) -> Trial:
        attrs = frozen.user_attrs
        state = {
            OptunaState.COMPLETE: TrialState.COMPLETE,
            OptunaState.FAIL: TrialState.BROKEN,
        }.get(frozen.state, TrialState.RUNNING)
        return Trial(
            id=frozen.number + 1,
            state=state,
            params=to_params(self.experiment.variables, frozen.params),
            value=frozen.value if state is TrialState.COMPLETE else None,
            reason=attrs.get(_REASON, ""),
            tail=attrs.get(_TAIL, ""),
            seconds=attrs.get(_SECONDS),
            lost=attrs.get(_LOST, 0),
            reports=frozen.intermediate_values,
        )


def open_study(experiment: Experiment, url: str) -> Study:
    """Open the study of ``experiment`` at ``url``, or create it.

    Raises:
        StudyMismatch: It exists with other variables or another direction.
        StorageError: The database cannot be used.
    """
    direction = StudyDirection.MAXIMIZE if experiment.maximize else StudyDirection.MINIMIZE
    with _translated():
        storage = _storage(url)
        study = optuna.create_study(
            storage=storage,
            study_name=experiment.name,
            direction=direction,
            load_if_exists=True,
        )
        declared = _declaration(experiment)
        known = study.user_attrs.get(_VARIABLES)
        if _TOKEN not in study.user_attrs:
            study.set_user_attr(_TOKEN, uuid.uuid4().hex)
        if known is None:
            study.set_user_attr(_VARIABLES, declared)
        elif known != declared:
            raise _mismatch(experiment, known, declared)
        return Study(experiment, url, storage, study)


def has_study(name: str, url: str) -> bool:
    """Tell whether the storage at ``url`` holds the experiment ``name``."""
    return name in study_names(url)


def study_names(url: str) -> list[str]:
    """Return the names of all studies in the storage at ``url``."""
    with _translated():
        return optuna.get_all_study_names(_storage(url))


def stored_trials(name: str, url: str) -> tuple[list[StudyDirection], list[FrozenTrial]]:
    """Return the directions and all trials of the study ``name``, whoever made it."""
    with _translated():
        study = optuna.load_study(study_name=name, storage=_storage(url))
        return study.directions, study.get_trials(deepcopy=False)


def study_owner(name: str, url: str) -> dict[str, str] | None:
    """Return where the study ``name`` is run from; None when that was never stored."""
    with _translated():
        study = optuna.load_study(study_name=name, storage=_storage(url))
        owner: dict[str, str] | None = study.user_attrs.get(_OWNER)
        return owner


def delete_study(name: str, url: str) -> None:
    """Delete the study ``name`` and its trials."""
    with _translated():
        optuna.delete_study(study_name=name, storage=_storage(url))


def _storage(url: str) -> BaseStorage:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        if url.startswith("sqlite"):
            options = {"timeout": _LOCK_WAIT_S, "factory": TrialConnection}
            return get_storage(RDBStorage(url, engine_kwargs={"connect_args": options}))
        return get_storage(url)
    except ImportError as error:
        raise InputError(
            f"the storage needs a database driver: {error.__cause__ or error}",
            "Install it, for instance: pip install 'psycopg[binary]' for postgresql://, "
            "pymysql for mysql+pymysql://.",
        ) from None
    except (ValueError, ArgumentError) as error:
        raise InputError(
            f"the storage cannot be used: {error}",
            "Expected a URL such as sqlite:////path/to/file.db or postgresql://HOST/DATABASE.",
        ) from None


def _declaration(experiment: Experiment) -> dict[str, str]:
    """Return what makes two configs the same search."""
    lines = {variable.name: describe(variable) for variable in experiment.variables}
    return {**lines, "(direction)": "maximize" if experiment.maximize else "minimize"}


def _mismatch(
    experiment: Experiment, known: dict[str, str], declared: dict[str, str]
) -> StudyMismatch:
    names = sorted(known.keys() | declared.keys())
    rows = [
        f"  {name}: stored {known.get(name, 'nothing')}; config.pb {declared.get(name, 'nothing')}"
        for name in names
        if known.get(name) != declared.get(name)
    ]
    return StudyMismatch(
        f"{experiment.path} differs from the search stored as {experiment.name!r}:\n"
        + "\n".join(rows),
        f"Undo the change, give it another name, or start anew: "
        f"spearmint cleanup {experiment.directory}",
    )


def _thinned(rows: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Return at most _MOST_REPORTS of ``rows``, evenly spread, the last one included."""
    every = -(-len(rows) // _MOST_REPORTS) or 1
    return rows[::-1][::every][::-1]


def best_trial(trials: Sequence[Trial], *, maximize: bool) -> Trial | None:
    """Return the complete trial with the best value, the earliest of equals; None if none is."""
    ranked = ranking(trials, maximize=maximize)
    return ranked[0] if ranked else None


def ranking(trials: Sequence[Trial], *, maximize: bool) -> list[Trial]:
    """Return the complete trials, best first; an infinite value of either sign is the worst."""
    sign = -1.0 if maximize else 1.0
    done = [(trial.value, trial) for trial in trials if trial.value is not None]

    def rank(pair: tuple[float, Trial]) -> tuple[float, int]:
        value, trial = pair
        return sign * value if math.isfinite(value) else math.inf, trial.id

    return [trial for _, trial in sorted(done, key=rank)]
