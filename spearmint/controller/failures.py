"""Failed trials whose cause is gone: they no longer count against their points."""

from __future__ import annotations

from dataclasses import dataclass, field

from spearmint.controller.submission import code_has_changed
from spearmint.controller.tally import Tally
from spearmint.layout import Layout
from spearmint.model import Trial, TrialState
from spearmint.store.study import Study

# What a trial lacks does not depend on its parameters.
_MISSING = (
    "FileNotFoundError", "ImportError", "ModuleNotFoundError", "NotADirectoryError",
    "PermissionError",
)  # fmt: skip
_SHELL_MISSING = ("exited with status 126", "exited with status 127")


@dataclass(slots=True)
class Failures:
    """The failures of a study that has no finished trial yet.

    If all trials failed, the cause was in the code or around it, and not in their parameters, as
    soon as one succeeds: failures of earlier runs, and those of this run because something was
    missing, are then disregarded.
    """

    study: Study
    layout: Layout
    _suspects: list[Trial] = field(default_factory=list)
    _has_finished: bool = False

    def resume(self, tally: Tally, *, retried: bool = False) -> None:
        """Read the failures of earlier runs; disregard those of code that was changed since.

        Args:
            tally: Counts of the trials of earlier runs.
            retried: Whether the failures are disregarded already, because they are retried.
        """
        self._has_finished = tally.finished > 0
        if not tally.broken or self._has_finished or retried:
            return
        broken = self.study.last(TrialState.BROKEN)
        if code_has_changed(self.study, self.layout):
            self.study.disregard(broken)
        else:
            self._suspects = [trial for trial in broken if not trial.out_of_memory]

    def add(self, trial: Trial) -> None:
        """Note a trial that failed now."""
        if not self._has_finished and is_about_missing(trial.reason):
            self._suspects.append(trial)

    def succeed(self) -> int:
        """Note that a trial succeeds, before it is stored; return how many are disregarded."""
        suspects, self._suspects = self._suspects, []
        first, self._has_finished = not self._has_finished, True
        if not (first and suspects):
            return 0
        self.study.disregard(suspects)
        return len(suspects)


def is_about_missing(reason: str) -> bool:
    """Return whether a trial failed because a file, a module or a permission was missing."""
    return reason.startswith(_MISSING) or reason.endswith(_SHELL_MISSING)


def retry_note(n: int, tally: Tally, n_running: int) -> str:
    """Return the message about ``n`` queued points, and why they do not run now."""
    if not n:
        return "There is no broken trial to retry."
    text = f"Queued the points of {n} broken trial{'s' if n != 1 else ''}"
    if reason := tally.stop_reason():
        return f"{text}; they do not run now: {reason}."
    if not tally.wants_trial(n_running):
        return f"{text}; raise --max-finished-jobs to run them."
    return f"{text}."
