"""The Optuna study of a search or region, with all trials and their states."""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import optuna
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import TrialState as OptunaState

from spearmint.choosers.base import Chooser
from spearmint.choosers.feasible_sampler import FeasibleSampler
from spearmint.choosers.history import ABANDONED, DISREGARDED, DIVERGED, INFEASIBLE
from spearmint.choosers.rungs import RUNGS, is_paused
from spearmint.conditions import parents_first
from spearmint.model import Experiment, Params, Result, Trial, TrialState
from spearmint.store.annotations import Annotations
from spearmint.store.asking import Asking
from spearmint.store.distributions import (
    distributions,
    guesses_of,
    references_of,
    to_flat,
    tree_of,
)
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.frozen_trials import (
    ALONE,
    LOST,
    REASON,
    SECONDS,
    TAIL,
    excess,
    gaps,
    thinned,
    to_trial,
    user_attributes,
)
from spearmint.store.learning import Learning
from spearmint.store.pausing import IMPORTED, Pausing, stored_rungs
from spearmint.store.recommending import Recommending
from spearmint.store.sql.fast_reads import one_transaction
from spearmint.store.sql.lookups import Lookups
from spearmint.store.sql.whole import WholeTrials
from spearmint.store.sql.writes import GAP
from spearmint.store.strategy import Proposed, Strategy

OWNER = "spearmint:owner"
TOKEN = "spearmint:token"  # noqa: S105 - names the study, opens nothing
_MOST_LIVE_REPORTS = 1000  # stored per trial while a pruner watches it


def _ignore() -> None:
    """Do nothing: limits of the search decide when it ends."""


class Study(Lookups, Strategy, Asking, Annotations, Learning, Pausing, Recommending):
    """The trials of one search, in an Optuna study that any Optuna tool can open."""

    def __init__(
        self, experiment: Experiment, url: str, storage: BaseStorage, study: optuna.Study
    ) -> None:
        self.experiment = experiment
        self.url = url
        self._storage = storage
        self._study = study
        # A sampler that has proposed every point calls it, which raises outside of ``optimize``.
        study.stop = _ignore  # type: ignore[method-assign]
        self._distributions = distributions(parents_first(experiment.variables))
        self._tree = tree_of(experiment.variables, experiment.linear)
        self._whole = WholeTrials(study._study_id, list(self._distributions), self._tree)
        self._proposed: dict[frozenset[tuple[str, Any]], deque[Proposed]] = {}
        self._token = str(study.user_attrs.get(TOKEN, study.study_name))

    def use(self, sampler: BaseSampler, pruner: BasePruner | None = None) -> None:
        """Set the sampler that proposes trials and the pruner that stops them early."""
        if isinstance(sampler, Chooser):
            sampler.tree = self._tree
            sampler.guesses = guesses_of(self.experiment.variables)
            sampler.references = references_of(self.experiment.objectives)
        elif self._tree is not None and self._tree.linear:
            sampler = FeasibleSampler(sampler, self._tree)
        self._study.sampler = sampler
        self._study.pruner = pruner or NopPruner()

    @property
    def prunes(self) -> bool:
        """Whether trials can be stopped early."""
        return not isinstance(self._study.pruner, NopPruner)

    @property
    @wraps_storage_errors()
    def owner(self) -> dict[str, str] | None:
        """The directory that runs the study, as stored by ``set_owner``."""
        owner: dict[str, str] | None = self._study.user_attrs.get(OWNER)
        return owner

    @wraps_storage_errors()
    def set_owner(self, owner: dict[str, str]) -> None:
        """Store the directory that runs the study."""
        self._study.set_user_attr(OWNER, owner)

    def key(self, trial: Trial) -> str:
        """Return a unique digest of the study, and the number, parameters and rung of a trial.

        A result file with this key belongs to this part of the trial, even if its folder was used
        before.
        """
        rung = [len(trial.rungs)] if trial.rungs else []
        content = json.dumps([self._token, trial.id, trial.params, *rung], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @contextmanager
    def one_transaction(self, *, all_or_nothing: bool = False) -> Iterator[None]:
        """Store everything that this context writes in one transaction at its end.

        Args:
            all_or_nothing: Whether to store nothing if the context raises.
        """
        changes = one_transaction(self._storage, all_or_nothing=all_or_nothing)
        with wraps_storage_errors(), changes:
            yield

    @wraps_storage_errors()
    def complete(self, trial: Trial, result: Result) -> Trial:
        """Store a finished trial; its ``result`` must have a value."""
        storage_id = self._storage_id(trial)
        reports = thinned(sorted(result.reports.items()))
        self._store_steps(storage_id, {s: v for s, v in reports if trial.reports.get(s) != v})
        declared, limited = self.experiment.constraints, result.constraints
        attributes = user_attributes(declared, limited, result.seconds)
        limits = gaps(declared, limited)
        goals = self.experiment.objectives if self.experiment.has_front else ()
        objectives = {each.name: result.objectives[each.name] for each in goals}
        values = [*objectives.values()] or [float(result.value or 0.0)]
        is_followed = type(self._study.sampler).after_trial is not BaseSampler.after_trial
        if (storage := self._sql) is None or is_followed or result.value is None:
            for key, content in attributes.items():
                self._storage.set_trial_user_attr(storage_id, key, content)
            for name, gap in limits.items():
                self._storage.set_trial_system_attr(storage_id, f"{GAP}{name}", gap)
            self._study.tell(trial.id - 1, list(values))
        else:
            storage.complete(storage_id, values, attributes, limits)
        return replace(
            trial,
            state=TrialState.COMPLETE,
            value=None if goals else result.value,
            seconds=result.seconds,
            reports={**trial.reports, **result.reports} if trial.rungs else result.reports,
            objectives=objectives,
            losses=tuple(each.loss(objectives[each.name]) for each in goals),
            constraints=limited,
            excess=excess(declared, limited),
        )

    @wraps_storage_errors()
    def report(self, trial: Trial, reports: Mapping[int, float]) -> Trial:
        """Store the reports of a running trial: finite values only, up to 1000 steps.

        If the last value is not finite, only its step is stored.
        """
        room = _MOST_LIVE_REPORTS - len(trial.reports)
        new = {s: v for s, v in sorted(reports.items()) if trial.reports.get(s) != v}
        storage_id = self._storage_id(trial)
        stored = [(s, v) for s, v in new.items() if math.isfinite(v)][: max(0, room)]
        self._store_steps(storage_id, dict(stored))
        last = max(reports, default=0)
        if last in new and not math.isfinite(reports[last]):
            self._storage.set_trial_user_attr(storage_id, DIVERGED, last)
        return replace(trial, reports={**trial.reports, **dict(stored)})

    def _store_steps(self, storage_id: int, values: Mapping[int, float]) -> None:
        """Store finite intermediate values of a running trial, by step."""
        if values and (storage := self._sql) is not None:
            storage.report(storage_id, values)
            return
        for step, value in values.items():
            self._storage.set_trial_intermediate_value(storage_id, step, value)

    @wraps_storage_errors()
    def should_prune(self, trial: Trial) -> bool:
        """Return whether the pruner would stop ``trial``, given its reports."""
        frozen = self._storage.get_trial(self._storage_id(trial))
        return self._study.pruner.prune(self._study, frozen)

    @wraps_storage_errors()
    def prune(self, trial: Trial, seconds: float | None = None) -> Trial:
        """Store that a trial was stopped early."""
        with one_transaction(self._storage, all_or_nothing=True):
            if seconds is not None:
                self._storage.set_trial_user_attr(self._storage_id(trial), SECONDS, seconds)
            self._study.tell(trial.id - 1, state=OptunaState.PRUNED)
        return replace(trial, state=TrialState.PRUNED, seconds=seconds)

    @wraps_storage_errors()
    def break_(self, trial: Trial, result: Result, tail: str) -> Trial:
        """Store that a trial failed, with the reason and the end of its output."""
        storage_id = self._storage_id(trial)
        attrs = {REASON: result.reason, TAIL: tail, SECONDS: result.seconds}
        if result.out_of_memory:
            attrs[INFEASIBLE] = True
        with one_transaction(self._storage, all_or_nothing=True):
            for key, value in attrs.items():
                self._storage.set_trial_user_attr(storage_id, key, value)
            self._study.tell(trial.id - 1, state=OptunaState.FAIL)
        return replace(
            trial,
            state=TrialState.BROKEN,
            reason=result.reason,
            out_of_memory=result.out_of_memory,
            tail=tail,
            seconds=result.seconds,
        )

    @wraps_storage_errors()
    def add_complete(
        self,
        params: Params,
        value: float | Sequence[float],
        *,
        source: str,
        seconds: float | None = None,
        constraints: Mapping[str, float] | None = None,
        rungs: Sequence[float] = (),
    ) -> None:
        """Store a trial that was evaluated elsewhere, in ``source``.

        Args:
            rungs: Its values at the rungs below the last one; NaN where one is unknown.
        """
        declared, values = self.experiment.constraints, constraints or {}
        attrs: dict[str, Any] = {IMPORTED: source, **user_attributes(declared, values, seconds)}
        if rungs:
            attrs[RUNGS] = stored_rungs(rungs, seconds or 0.0, is_paused=False)
        flat = to_flat(self.experiment.variables, params)
        self._study.add_trial(
            create_trial(
                params=flat,
                distributions=self._distributions_of(flat),
                values=[value] if isinstance(value, float | int) else list(value),
                user_attrs=attrs,
                constraints=gaps(declared, values) or None,
            )
        )

    @wraps_storage_errors()
    def add_loss(self, trial: Trial, *, alone: bool = False) -> Trial:
        """Count one more job of ``trial`` without a result; ``alone``: it failed as a whole."""
        number = self._storage_id(trial)
        if alone:
            self._storage.set_trial_user_attr(number, ALONE, True)
        self._storage.set_trial_user_attr(number, LOST, trial.lost + 1)
        return replace(trial, lost=trial.lost + 1, alone=alone or trial.alone)

    @wraps_storage_errors()
    def disregard(self, trials: Iterable[Trial]) -> None:
        """Hide ``trials`` from choosers, but not from users."""
        numbers = {trial.id - 1 for trial in trials}
        known = {trial_id - 1 for trial_id in self.disregarded()}
        self._study.set_user_attr(DISREGARDED, sorted(numbers | known))

    @wraps_storage_errors()
    def disregarded(self) -> set[int]:
        """Return the numbers of the trials that choosers do not see."""
        return {number + 1 for number in self._study.user_attrs.get(DISREGARDED, [])}

    @wraps_storage_errors()
    def abandon_unproposed(self) -> None:
        """Fail trials whose proposal a killed controller did not finish; requeue seed points."""
        for frozen in self._frozen(OptunaState.RUNNING):
            if not self._is_whole(frozen):
                seed = frozen.system_attrs.get("fixed_params")
                if seed:
                    self._study.enqueue_trial(seed)
                self._storage.set_trial_user_attr(frozen._trial_id, ABANDONED, True)
                self._study.tell(frozen.number, state=OptunaState.FAIL)

    @wraps_storage_errors()
    def trials(self) -> list[Trial]:
        """Return all trials by id."""
        return [
            to_trial(self.experiment, frozen) for frozen in self._frozen() if self._is_whole(frozen)
        ]

    @wraps_storage_errors()
    def span(self) -> tuple[datetime | None, datetime | None]:
        """Return when the first trial started and the last one ended, in local time."""
        frozen = self._frozen()
        starts = [trial.datetime_start for trial in frozen if trial.datetime_start]
        ends = [trial.datetime_complete for trial in frozen if trial.datetime_complete]
        return min(starts, default=None), max(ends, default=None)

    @wraps_storage_errors()
    def find(self, trial_id: int) -> Trial | None:
        """Return the trial ``trial_id`` in any state; None if there is none."""
        study_id = self._study._study_id
        try:
            found = self._storage.get_trial_id_from_study_id_trial_number(study_id, trial_id - 1)
        except KeyError:
            return None
        frozen = self._storage.get_trial(found)
        return to_trial(self.experiment, frozen) if self._is_whole(frozen) else None

    @wraps_storage_errors()
    def is_free(self, trial_id: int) -> bool:
        """Return whether the database has no trial ``trial_id``, not even a proposal."""
        study_id = self._study._study_id
        try:
            self._storage.get_trial_id_from_study_id_trial_number(study_id, trial_id - 1)
        except KeyError:
            return True
        return False

    @wraps_storage_errors()
    def find_running(self, trial_id: int) -> Trial | None:
        """Return the running trial ``trial_id``; None if there is none."""
        found = self.find(trial_id)
        return found if found is not None and found.state is TrialState.RUNNING else None

    @wraps_storage_errors()
    def running(self) -> list[Trial]:
        """Return the trials that have not ended and are not paused, by id."""
        frozen = self._frozen(OptunaState.RUNNING)
        return self._whole_of(trial for trial in frozen if not is_paused(trial))

    def _whole_of(self, trials: Iterable[FrozenTrial]) -> list[Trial]:
        return [to_trial(self.experiment, trial) for trial in trials if self._is_whole(trial)]

    def _frozen(self, *states: OptunaState) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False, states=states or None)

    def _is_whole(self, frozen: FrozenTrial) -> bool:
        return frozen.state is not OptunaState.WAITING and self._has_all(frozen.params)

    def _storage_id(self, trial: Trial) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(
            self._study._study_id, trial.id - 1
        )
