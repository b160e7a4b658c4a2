"""Counts of a study's trials and the rules that end it; pure: no files, no clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spearmint.controller.events import StudyCounts
from spearmint.controller.limits import StudyLimits
from spearmint.errors import SearchFailed
from spearmint.formatting import indented, plain
from spearmint.model import Trial, TrialState, best_trial, is_better

_LATER_FACTOR = 10  # broken trials in a row that end a search which had successes


@dataclass(slots=True, kw_only=True)
class Tally:
    """Figures of the trials of a study that have ended, and what its limits say of them.

    Attributes:
        limits: When the study has enough trials.
        maximize: Whether larger values are better.
        complete, pruned, broken: Trials by their end.
        broken_in_a_row: Broken trials since the last other one, or since ``forget_failures``.
        since_best: Complete and pruned trials since the best one.
        seconds: Sum over all trials.
        last_broken: The last of ``broken_in_a_row``; None while that is 0 in this run.
        best: The complete trial with the best value, the earliest of equals.
    """

    limits: StudyLimits
    maximize: bool = False
    complete: int = 0
    pruned: int = 0
    broken: int = 0
    broken_in_a_row: int = 0
    since_best: int = 0
    seconds: float = 0.0
    last_broken: Trial | None = None
    best: Trial | None = None

    @property
    def finished(self) -> int:
        """Trials that gave a value or were pruned."""
        return self.complete + self.pruned

    @property
    def ended(self) -> int:
        """All trials that have ended."""
        return self.finished + self.broken

    def counts(self, region: str, *, running: int, queued: int) -> StudyCounts:
        """Return these figures for observers, with the trials that run and are queued."""
        return StudyCounts(
            region=region,
            complete=self.complete,
            pruned=self.pruned,
            broken=self.broken,
            running=running,
            queued=queued,
            seconds=self.seconds,
            best=self.best,
        )

    def add(self, trial: Trial) -> None:
        """Count ``trial``, which has ended."""
        self.seconds += trial.seconds or 0.0
        if trial.state is TrialState.BROKEN:
            self.broken += 1
            self.broken_in_a_row += 1
            self.last_broken = trial
            return
        self.broken_in_a_row = 0
        self.since_best += 1
        if trial.state is TrialState.PRUNED:
            self.pruned += 1
            return
        self.complete += 1
        rivals = [trial] if self.best is None else [self.best, trial]
        if best_trial(rivals, maximize=self.maximize) is trial:
            self.best, self.since_best = trial, 0

    def forget_failures(self) -> None:
        """Start the row of broken trials anew: each run of a search gets its own attempts."""
        self.broken_in_a_row, self.last_broken = 0, None

    def wants_trial(self, n_running: int) -> bool:
        """Tell whether one more trial should start beside ``n_running``."""
        has_room = self.finished + n_running < self.limits.finished
        return has_room and not (self.is_failing() or self.stop_reason())

    def stop_reason(self) -> str:
        """Return which rule has ended the study before its last trial; empty while none has."""
        if self._has_reached_target():
            return f"the target {self.limits.target:g} is reached"
        if self.limits.patience is not None and self.since_best >= self.limits.patience:
            return f"no better value in the last {self.since_best} trials"
        return ""

    def _has_reached_target(self) -> bool:
        """Tell whether the best value is good enough; an infinite one of either sign is the worst.

        That is how :func:`spearmint.model.ranking` sorts them.
        """
        value = self.best.value if self.best is not None else None
        target = self.limits.target
        if target is None or value is None or not math.isfinite(value):
            return False
        return not is_better(target, value, maximize=self.maximize)

    def is_failing(self) -> bool:
        """Tell whether so many trials broke in a row that no more should start."""
        factor = 1 if self.finished == 0 else _LATER_FACTOR
        return self.broken_in_a_row >= self.limits.broken * factor

    def failure(self, region: str, output_of: Callable[[int], Path]) -> SearchFailed | None:
        """Return the error of a study that is failing; None for any other.

        Args:
            region: Region of the study; empty where there are none.
            output_of: Returns the output file of the trial with an id.
        """
        trial = self.last_broken
        if trial is None or not self.is_failing():
            return None
        which = "first" if self.finished == 0 else "last"
        where = f"{region}: " if region else ""
        reason = f"trial {trial.id}: {plain(trial.reason)}\n{indented(trial.tail)}".rstrip()
        return SearchFailed(
            f"{where}the {which} {self.broken_in_a_row} trials all broke; the last one, {reason}",
            f"Its whole output: {output_of(trial.id)}\nFix it, then run the same command again.",
        )
