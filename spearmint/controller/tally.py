"""Count the trials of a study and apply its stop rules, without files and clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spearmint.controller.events import StudyCounts
from spearmint.controller.limits import StudyLimits
from spearmint.errors import SearchFailed
from spearmint.formatting import indented, plain
from spearmint.model import Trial, TrialState, best_trial, is_better, with_new

if TYPE_CHECKING:
    from spearmint.store.study import Study

_LATER_FACTOR = 10  # of the limit, for failures in a row after a success


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of the ended trials of a study, and its stop rules.

    Attributes:
        limits: Limits of the study.
        maximize: Whether larger values are better.
        complete, pruned, broken, paused: Number of trials in each state.
        broken_in_a_row: Broken trials since the last other trial, or since ``forget_failures``.
        since_best: Complete and pruned trials since the best one, and paused ones after it.
        seconds: Total seconds of all trials.
        crashed_in_a_row: The same without trials that ran out of GPU memory.
        last_broken: The last of ``broken_in_a_row``; None if that is 0.
        best: The feasible complete trial with the best value, the first of equal ones.
        front: The Pareto front of several objectives.
    """

    limits: StudyLimits
    maximize: bool = False
    complete: int = 0
    pruned: int = 0
    broken: int = 0
    paused: int = 0
    broken_in_a_row: int = 0
    since_best: int = 0
    seconds: float = 0.0
    crashed_in_a_row: int = 0
    last_broken: Trial | None = None
    best: Trial | None = None
    front: list[Trial] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Number of complete, pruned and paused trials."""
        return self.complete + self.pruned + self.paused

    @property
    def ended(self) -> int:
        """Number of all ended trials."""
        return self.finished + self.broken

    def counts(self, region: str, *, running: int, queued: int) -> StudyCounts:
        """Return these counts for observers, with the running and queued trials."""
        return StudyCounts(
            region=region,
            complete=self.complete,
            pruned=self.pruned,
            broken=self.broken,
            running=running,
            queued=queued,
            paused=self.paused,
            seconds=self.seconds,
            best=self.best,
            front=tuple(self.front),
        )

    def add(self, trial: Trial, *, is_failure: bool = True) -> None:
        """Count ``trial``, which ended.

        Args:
            trial: The trial.
            is_failure: Whether it counts for ``broken_in_a_row`` if it is broken; not if a user
                stopped it.
        """
        self.seconds += trial.last_s
        if trial.state is TrialState.BROKEN:
            self.broken += 1
            if is_failure:
                self.broken_in_a_row += 1
                self.crashed_in_a_row += not trial.out_of_memory
                self.last_broken = trial
            return
        self.broken_in_a_row = self.crashed_in_a_row = 0
        if trial.state is TrialState.PAUSED:
            self.paused += 1
            self.since_best += self.best is not None and len(trial.rungs) == 1
            return
        self.since_best += not trial.rungs  # counted when it was first paused
        if trial.state is TrialState.PRUNED:
            self.pruned += 1
            return
        self.complete += 1
        if trial.losses:
            self._add_to_front(trial)
            return
        rivals = [trial] if self.best is None else [self.best, trial]
        if best_trial(rivals, maximize=self.maximize) is trial:
            self.best, self.since_best = trial, 0

    def _add_to_front(self, trial: Trial) -> None:
        self.front = with_new(self.front, trial)
        if any(other is trial for other in self.front):
            self.since_best = 0

    def resume_paused(self) -> None:
        """Count a paused trial as running."""
        self.paused -= 1

    def restore(self, study: Study) -> None:
        """Count the ended trials of ``study``, as ``add`` for each but for failures in a row."""
        counts = study.counts()
        self.complete = counts[TrialState.COMPLETE]
        self.pruned = counts[TrialState.PRUNED]
        self.broken = counts[TrialState.BROKEN]
        self.paused = counts[TrialState.PAUSED]
        self.seconds = study.seconds()
        self.front = study.front()
        self.best = None if self.front else next(iter(study.best()), None)
        leaders = self.front or ([self.best] if self.best else [])
        if leaders or study.experiment.fidelity is None:
            last = max((trial.id for trial in leaders), default=0)
            self.since_best = study.finished_after(last)

    def forget_failures(self) -> None:
        """Reset ``broken_in_a_row``: the limit applies to each run separately."""
        self.broken_in_a_row = self.crashed_in_a_row = 0
        self.last_broken = None

    def wants_trial(self, n_running: int) -> bool:
        """Return whether one more trial should start while ``n_running`` run."""
        has_room = self.finished + n_running < self.limits.finished
        return has_room and not (self.is_failing() or self.stop_reason())

    def stop_reason(self) -> str:
        """Return which rule stops the study early; empty for none."""
        if self._has_reached_target():
            return f"the target {self.limits.target:g} is reached"
        if self.limits.patience is not None and self.since_best >= self.limits.patience:
            return f"no better value in the last {self.since_best} trials"
        return ""

    def _has_reached_target(self) -> bool:
        """Return whether the best value reaches the target.

        Infinite values of both signs are the worst, as in :func:`spearmint.model.ranking`.
        """
        value = self.best.value if self.best is not None else None
        target = self.limits.target
        if target is None or value is None or not math.isfinite(value):
            return False
        return not is_better(target, value, maximize=self.maximize)

    def is_failing(self) -> bool:
        """Return whether too many trials failed in a row.

        Trials without enough GPU memory count as failures after a success: a smaller batch can
        still work.
        """
        if self.finished == 0 and self.crashed_in_a_row >= self.limits.broken:
            return True
        return self.broken_in_a_row >= self.limits.broken * _LATER_FACTOR

    def failure(self, region: str, output_of: Callable[[int], Path]) -> SearchFailed | None:
        """Return the error if too many trials failed in a row; None otherwise.

        Args:
            region: Region of the study; empty without regions.
            output_of: Returns the output file of a trial by its id.
        """
        trial = self.last_broken
        if trial is None or not self.is_failing():
            return None
        which = "first" if self.finished == 0 else "last"
        where = f"{region}: " if region else ""
        reason = f"trial {trial.id}: {plain(trial.reason)}\n{indented(trial.tail)}".rstrip()
        return SearchFailed(
            f"{where}the {which} {self.broken_in_a_row} trials all failed. The last is {reason}",
            f"Full output: {output_of(trial.id)}\nFix the cause and rerun the command.",
        )
