"""The paused trials of a study: which one to resume, and what users read about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from spearmint.fidelity import Climber, next_to_resume
from spearmint.model import Trial, TrialState
from spearmint.store.study import Study


@dataclass(slots=True)
class PausedTrials:
    """Follows the values of all trials at rungs; does nothing without a block ``fidelity``."""

    study: Study
    _climbers: dict[int, Climber] = field(default_factory=dict)
    _next: int | None = None
    _is_current: bool = True
    _has_warned: bool = False
    _earlier: set[int] = field(default_factory=set)  # paused by an earlier controller

    def restore(self) -> None:
        """Read the values of earlier runs."""
        if self.study.experiment.fidelity is not None:
            self._climbers, self._is_current = self.study.climbers(), False
            self._earlier = {i for i, each in self._climbers.items() if each.is_paused}

    def add(self, trial: Trial, *, counts: bool = True) -> None:
        """Note a trial that ended, or that was paused.

        Args:
            trial: The trial.
            counts: Whether it counts on its rungs; not if a user stopped it.
        """
        if self.study.experiment.fidelity is None:
            return
        self._climbers.pop(trial.id, None)
        self._is_current = False
        if not counts:
            return
        sign = -1.0 if self.study.experiment.maximize else 1.0
        values = trial.rungs if trial.value is None else (*trial.rungs, trial.value)
        if values:
            losses = tuple(sign * value for value in values)
            is_paused = trial.state is TrialState.PAUSED
            self._climbers[trial.id] = Climber(losses, is_paused, trial.goal)

    def goal(self, trial: Trial, value: float) -> int:
        """Return to which rung a trial with this value at its next rung continues anyway."""
        return self.study.goal_of(trial, value, self._climbers)

    def next(self, leaving: Collection[int]) -> int | None:
        """Return the id of the paused trial to resume now; None if there is none.

        Args:
            leaving: Trials whose last job has not ended, which cannot be resumed yet.
        """
        fidelity = self.study.experiment.fidelity
        if fidelity is None:
            return None
        if not self._is_current:
            self._next, self._is_current = next_to_resume(self._climbers, fidelity), True
        if self._next not in leaving:
            return self._next
        able = {
            number: replace(each, is_paused=each.is_paused and number not in leaving)
            for number, each in self._climbers.items()
        }
        return next_to_resume(able, fidelity)

    def is_from_earlier(self, trial_id: int) -> bool:
        """Return, once, whether an earlier controller paused a trial, whose job can still run."""
        found = trial_id in self._earlier
        self._earlier.discard(trial_id)
        return found

    def remove(self, trial_id: int) -> Trial | None:
        """Return a paused trial, which no longer counts on any rung; None if it is not one."""
        known = self._climbers.get(trial_id)
        if known is None or not known.is_paused:
            return None
        del self._climbers[trial_id]
        self._is_current = False
        trial = self.study.find(trial_id)
        return trial if trial is not None and trial.state is TrialState.PAUSED else None

    def resume(self, trial_id: int) -> Trial | None:
        """Store that a paused trial runs, and return it; None if it is not paused any more."""
        known = self._climbers[trial_id]
        trial = self.remove(trial_id)
        if trial is None:
            return None
        self._climbers[trial_id] = replace(known, is_paused=False)
        return self.study.resume_paused(trial)

    def warning(self, trial: Trial) -> str:
        """Return a message if a trial trained beyond its rung, once; empty otherwise."""
        fidelity = self.study.experiment.fidelity
        if fidelity is None or self._has_warned or trial.state is not TrialState.PAUSED:
            return ""
        rung, last = fidelity.rungs[len(trial.rungs) - 1], max(trial.reports, default=0)
        if last <= rung:
            return ""
        self._has_warned = True
        return (
            f"{trial.label} reported step {last}, and its part ended at {rung} {fidelity.name}. "
            "Train only the steps of spearmint.steps(), or up to $SPEARMINT_STEPS_UNTIL: "
            "otherwise pausing saves nothing."
        )
