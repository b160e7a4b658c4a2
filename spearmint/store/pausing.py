"""Pause trials at rungs, and resume them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.trial import TrialState as OptunaState
from optuna.trial import create_trial

from spearmint.choosers.rungs import RUNGS, is_paused, rungs_of, values_at_rungs
from spearmint.fidelity import Climber, goal_of
from spearmint.model import Experiment, Params, Result, Trial, TrialState, ranking
from spearmint.store.distributions import to_flat
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.frozen_trials import SECONDS, thinned

IMPORTED = "imported"
"""Attribute of a trial: its source."""


def stored_rungs(
    values: Sequence[float],
    seconds: float,
    parts: Sequence[float] = (),
    *,
    is_paused: bool,
    goal: int = 0,
) -> dict[str, Any]:
    """Return what is stored about the rungs of a trial; see ``RUNGS``."""
    return {
        "values": [None if math.isnan(value) else value for value in values],
        "seconds": seconds,
        "parts": list(parts),
        "paused": is_paused,
        **({"goal": goal} if goal else {}),
    }


class Pausing:
    """The methods of :class:`spearmint.store.study.Study` for trials that train in parts.

    Optuna has no state for a paused trial: it is stored as running, with an attribute. All that a
    part changes is in this one attribute, so a killed controller never leaves half of it.
    """

    experiment: Experiment
    _storage: BaseStorage
    _study: optuna.Study

    def _distributions_of(self, point: Mapping[str, Any]) -> dict[str, BaseDistribution]:
        raise NotImplementedError

    def _storage_id(self, trial: Trial) -> int:
        raise NotImplementedError

    def trials(self) -> list[Trial]:
        """Return all trials by id."""
        raise NotImplementedError

    def disregarded(self) -> set[int]:
        """Return the numbers of the trials that choosers do not see."""
        raise NotImplementedError

    def at_highest_rung(self, most: int | None = 1) -> list[Trial]:
        """Return at most ``most`` trials of the highest rung that any reached, best first.

        Each has its value there as ``value``. Failed (broken) trials do not count.
        """
        if self.experiment.fidelity is None:
            return []
        trials = [t for t in self.trials() if t.rungs and t.state is not TrialState.BROKEN]
        highest = max((len(trial.rungs) for trial in trials), default=0)
        known = [replace(t, value=t.rungs[-1]) for t in trials if len(t.rungs) == highest]
        return ranking(known, maximize=self.experiment.maximize)[:most]

    @wraps_storage_errors()
    def pause(self, trial: Trial, result: Result, goal: int = 0) -> Trial:
        """Store the value of a trial at its next rung, where it waits.

        Args:
            trial: A running trial.
            result: Its value; its seconds are those of all its jobs.
            goal: It continues to this number of rungs, whatever its values are.
        """
        storage_id, value = self._storage_id(trial), float(result.value or 0.0)
        for step, reported in thinned(sorted(result.reports.items())):
            if trial.reports.get(step) != reported:
                self._storage.set_trial_intermediate_value(storage_id, step, reported)
        seconds = result.seconds or trial.earlier_s
        is_timed = result.seconds is not None
        if is_timed:
            self._storage.set_trial_user_attr(storage_id, SECONDS, seconds)
        known = trial.part_s if is_timed and len(trial.part_s) == len(trial.rungs) else None
        paused = replace(
            trial,
            state=TrialState.PAUSED,
            seconds=seconds if is_timed else None,
            rungs=(*trial.rungs, value),
            goal=goal,
            part_s=() if known is None else (*known, seconds - trial.earlier_s),
            reports={**trial.reports, **result.reports},
        )
        self._set_rungs(paused)
        return paused

    @wraps_storage_errors()
    def resume_paused(self, trial: Trial) -> Trial:
        """Store that a paused trial runs; its next job trains to the next rung."""
        resumed = replace(
            trial, state=TrialState.RUNNING, seconds=None, earlier_s=trial.seconds or 0.0
        )
        self._set_rungs(resumed)
        return resumed

    @wraps_storage_errors()
    def add_paused(
        self, params: Params, rungs: Sequence[float], *, source: str, seconds: float | None = None
    ) -> None:
        """Store a trial that was stopped elsewhere, in ``source``; it waits at its last rung."""
        flat = to_flat(self.experiment.variables, params)
        paused = create_trial(
            state=OptunaState.RUNNING,
            params=flat,
            distributions=self._distributions_of(flat),
            user_attrs={
                IMPORTED: source,
                **({} if seconds is None else {SECONDS: seconds}),
                RUNGS: stored_rungs(rungs, seconds or 0.0, is_paused=True),
            },
        )
        self._storage.create_new_trial(self._study._study_id, paused)

    def _set_rungs(self, trial: Trial) -> None:
        self._storage.set_trial_user_attr(
            self._storage_id(trial),
            RUNGS,
            stored_rungs(
                trial.rungs,
                trial.seconds or trial.earlier_s,
                trial.part_s,
                is_paused=trial.state is TrialState.PAUSED,
                goal=trial.goal,
            ),
        )

    def goal_of(self, trial: Trial, value: float, trials: Mapping[int, Climber]) -> int:
        """Return the number of rungs to which a trial continues, whatever its values are.

        Args:
            trial: The trial; its goal so far is kept.
            value: Its value at the rung that it reached now.
            trials: All trials, as ``climbers`` returns them.
        """
        if self.experiment.fidelity is None:
            return 0
        sign = -1.0 if self.experiment.maximize else 1.0
        losses = tuple(sign * each for each in (*trial.rungs, value))
        others = [trials[number] for number in sorted(trials) if number != trial.id]
        return goal_of(Climber(losses, False, trial.goal), others, self.experiment.fidelity)

    @wraps_storage_errors()
    def climbers(self) -> dict[int, Climber]:
        """Return the values at rungs of all trials that passed any, by id.

        Those that a user stopped do not count.
        """
        sign = -1.0 if self.experiment.maximize else 1.0
        left_out, found = self.disregarded(), {}
        for frozen in self._study.get_trials(deepcopy=False):
            known = rungs_of(frozen)
            if known is None or frozen.number + 1 in left_out:
                continue
            values = [sign * value for value in values_at_rungs(known)]
            if frozen.state is OptunaState.COMPLETE:
                values.append(sign * frozen.values[0])
            goal = known.get("goal", 0)
            found[frozen.number + 1] = Climber(tuple(values), is_paused(frozen), goal)
        return found
