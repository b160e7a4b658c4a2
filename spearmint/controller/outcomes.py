"""Store in the study how trials ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from spearmint.controller.events import SearchObserver
from spearmint.controller.running_trial import RunningTrial
from spearmint.drivers import Driver, Job, JobEnd
from spearmint.formatting import format_params
from spearmint.layout import Layout, TrialFolder
from spearmint.model import Language, Result, Trial
from spearmint.store.study import Study
from spearmint.trial.attempts import add_attempt
from spearmint.trial.batch.remote import bring_back, bring_files, drop_files, forget_result
from spearmint.trial.gpu_memory import last_gpu_memory_error
from spearmint.trial.results import read_result

_TAIL_LINES, _TAIL_BYTES = 20, 8192
_LAUNCHER_BYTES = 65536  # launchers print many lines after the exception


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Stores the result of each trial of a study, then calls ``on_end`` with the trial.

    ``on_success`` is called before a complete or pruned trial is stored. ``goal_of`` returns to how
    many rungs a trial continues that reached one with a value.
    """

    study: Study
    layout: Layout
    driver: Driver
    observer: SearchObserver
    on_end: Callable[[Trial], None]
    on_success: Callable[[], None] = lambda: None
    goal_of: Callable[[Trial, float], int] | None = None
    _ends: dict[Job, JobEnd] = field(default_factory=dict)

    def settle(self, running: RunningTrial) -> Trial | None:
        """Store the trial of a job that ended, or return the trial if it must be retried."""
        if self.store_job_result(running):
            return None
        if running.ended_by == "pruned":
            self.prune(running)
            return None
        if running.ended_by == "timeout":
            limit = self.study.experiment.trial_timeout_s
            reason = f"timed out after {limit:g} s"
            self._store_broken(running.trial, reason, running.charged_s())
            return None
        if running.ended_by == "stopped":
            self.store_stopped(running.trial, running.stop_reason, running.charged_s())
            return None
        return self._retry(running)

    def prune(self, running: RunningTrial) -> None:
        """Store that the pruner stopped a trial."""
        self.on_success()
        if running.is_in_batch:
            bring_files(running.job_folder, running.trial.id, running.folder)
        self._end(self.study.prune(running.trial, running.charged_s()))

    def _end_of(self, running: RunningTrial) -> JobEnd:
        """Return how a job ended without a result of this trial; the driver is asked once."""
        if failure := self.failure_of_all(running.trial, running.folder):
            return JobEnd(failure)
        if running.job not in self._ends:
            self._ends[running.job] = self.driver.explain(running.job)
        return self._ends[running.job]

    def forget_ends(self) -> None:
        """Ask the driver again how jobs ended: a later job can have the same id."""
        self._ends.clear()

    def failure_of_all(self, trial: Trial, folder: TrialFolder) -> str:
        """Return why a job of several trials failed if ``trial`` is to be retried alone, or ""."""
        result = read_result(folder, self.study.key(trial))
        return result.reason if result is not None and self._is_retried(trial, result) else ""

    def take_failure_of_all(self, trial: Trial, folder: TrialFolder) -> str:
        """Return the same, and delete the result: a failure counts once, also after a kill."""
        failure = self.failure_of_all(trial, folder)
        if failure:
            forget_result(self.layout.job(trial.id), trial.id, folder)
        return failure

    def _is_retried(self, trial: Trial, result: Result) -> bool:
        return result.together and trial.lost < self.study.experiment.max_retries

    def _retry(self, running: RunningTrial) -> Trial | None:
        """Return the trial of a lost job for a retry, or store it as broken.

        It is broken if a retry would end the same way, or after too many lost jobs.
        """
        is_alone = bool(self.failure_of_all(running.trial, running.folder))
        seconds, end = running.charged_s(), self._end_of(running)
        if not end.again:
            self._store_broken(running.trial, end.text, seconds)
            return None
        add_attempt(running.folder, end.text, job=running.job.id, seconds=seconds)
        if not end.counts:
            self.observer.note(f"{running.trial.label} is rerun on another host: {end.text}")
            return running.trial
        trial = self.study.add_loss(running.trial, alone=is_alone)
        if trial.lost > self.study.experiment.max_retries:
            times = f", {trial.lost} times" if trial.lost > 1 else ""
            self._store_broken(trial, end.text + times, seconds)
            return None
        self.observer.note(f"{trial.label} was lost ({end.text}). Retrying.")
        return trial

    def store_job_result(self, running: RunningTrial) -> bool:
        """Store the result of a job; return False if there is no valid result."""
        ended_by_us = bool(running.ended_by)
        return self.store_result(running.trial, running.folder, values_only=ended_by_us)

    def store_result(self, trial: Trial, folder: TrialFolder, *, values_only: bool = False) -> bool:
        """Store the result file of ``folder``; return False if it has no result of this trial.

        A failure of a job of several trials is not one: the trial is retried alone.

        Args:
            trial: A running trial.
            folder: Its folder.
            values_only: Ignore a failure in the file. The controller terminated the job, and the
                failure is only how the job reacted.
        """
        job = self.layout.job(trial.id)
        if job != folder:
            bring_back(job, trial.id, folder)
        result = read_result(folder, self.study.key(trial))
        if result is None and job != folder:
            bring_files(job, trial.id, folder)  # of a lost job, for the next one
        if result is None or (values_only and result.value is None):
            return False
        if self._is_retried(trial, result):
            return False
        seconds = trial.earlier_s + (result.seconds or 0.0)
        result = result if result.seconds is None else replace(result, seconds=seconds)
        if result.value is None:
            tail = tail_of(self.layout.log(trial.id))
            self._end(self.study.break_(trial, self._with_memory(trial, result), tail))
        else:
            self.on_success()  # before the trial is stored, which a kill can prevent
            fidelity = self.study.experiment.fidelity
            is_last = fidelity is None or fidelity.is_last(len(trial.rungs))
            store = self.study.complete if is_last else partial(self._pause, folder)
            self._end(store(trial, result))
        return True

    def _end(self, trial: Trial) -> None:
        job = self.layout.job(trial.id)
        if job != self.layout.folder(trial.id):
            drop_files(job, trial.id)
        self.on_end(trial)

    def _pause(self, folder: TrialFolder, trial: Trial, result: Result) -> Trial:
        """Store that a trial waits at its next rung, and the end of its job."""
        value = result.value or 0.0
        if self.goal_of is not None:
            goal = self.goal_of(trial, value)
        else:
            goal = self.study.goal_of(trial, value, self.study.climbers())
        paused = self.study.pause(trial, result, goal)
        fidelity = self.study.experiment.fidelity
        if fidelity is not None:
            end = fidelity.pause(len(paused.rungs))
            add_attempt(folder, end, seconds=(result.seconds or 0.0) - trial.earlier_s)
        return paused

    def _with_memory(self, trial: Trial, result: Result) -> Result:
        """Return the result of a failed trial; name its parameters if it lacked GPU memory."""
        reason = result.reason if result.out_of_memory else ""
        if self.study.experiment.language is Language.SHELL and " exited with " in result.reason:
            output = self.layout.log(trial.id)
            reason = last_gpu_memory_error(_end_of(output, _LAUNCHER_BYTES))
        if not reason:
            return result
        text = f"out of GPU memory at {format_params(trial.params)}: {reason}"
        return replace(result, reason=text, out_of_memory=True)

    def store_stopped(self, trial: Trial, reason: str, seconds: float) -> None:
        """Store that a user stopped ``trial``; choosers learn nothing from it."""
        self.study.disregard([trial])
        self._store_broken(trial, reason, seconds)

    def _store_broken(self, trial: Trial, reason: str, seconds: float) -> None:
        """Store that ``trial`` failed, and why."""
        result = Result(value=None, reason=reason, seconds=trial.earlier_s + seconds)
        self._end(self.study.break_(trial, result, tail_of(self.layout.log(trial.id))))


def tail_of(output: Path) -> str:
    """Return the last 20 lines of the output of a trial; empty without output."""
    return "\n".join(_end_of(output, _TAIL_BYTES).splitlines()[-_TAIL_LINES:])


def _end_of(output: Path, size: int) -> str:
    with contextlib.suppress(OSError), output.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - size))
        return file.read(size).decode("utf-8", errors="replace")
    return ""
