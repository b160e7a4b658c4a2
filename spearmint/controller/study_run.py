"""The trials of one study: started, collected, retried, ended early."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.controller.ending import EXIT_GRACE_S, EndingJobs
from spearmint.controller.events import SearchObserver, StudyCounts
from spearmint.controller.limits import StudyLimits
from spearmint.controller.outcomes import Outcomes
from spearmint.controller.running_trial import RunningTrial
from spearmint.controller.submission import code_has_changed, job_request, prepare_folder
from spearmint.controller.tally import Tally
from spearmint.drivers import Driver, Job, JobState
from spearmint.errors import DriverUnreachable, SearchFailed
from spearmint.layout import Layout, TrialFolder
from spearmint.model import Experiment, Trial, TrialState
from spearmint.store.records import Records
from spearmint.store.study import Study
from spearmint.trial.reporting import read_reports


@dataclass(slots=True)
class StudyRun:
    """Runs the trials of one study; every step may be the last before a kill.

    The order of writes makes that safe: a trial is stored before its folder is written, its folder
    before its job starts, and its result is a file before it is stored. A result that a killed
    controller did not store is stored by the next one.
    """

    experiment: Experiment
    layout: Layout
    study: Study
    driver: Driver
    limits: StudyLimits
    records: Records
    observer: SearchObserver
    tally: Tally = field(init=False)
    _outcomes: Outcomes = field(init=False)
    _ending: EndingJobs = field(init=False)
    _running: dict[int, RunningTrial] = field(default_factory=dict)
    _waiting: deque[Trial] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.tally = Tally(limits=self.limits, maximize=self.experiment.maximize)
        self._outcomes = Outcomes(
            self.study, self.layout, self.driver, self.observer, on_end=self._count_ended
        )
        self._ending = EndingJobs(self.driver)

    def counts(self) -> StudyCounts:
        """Return the counts of this moment."""
        queued = sum(running.waiting for running in self._running.values())
        return self.tally.counts(
            self.experiment.region, running=len(self._running) - queued, queued=queued
        )

    @property
    def jobs(self) -> list[Job]:
        """Jobs that run or may have ended."""
        return [*(running.job for running in self._running.values()), *self._ending.jobs]

    @property
    def n_running(self) -> int:
        """Trials whose job is queued or runs."""
        return len(self._running)

    @property
    def is_busy(self) -> bool:
        """Whether there is something to wait for."""
        return bool(self.jobs)

    @property
    def labels(self) -> list[str]:
        """Their trials, for people: ``7``, or ``us 7``."""
        region = self.experiment.region
        return [f"{region} {trial_id}" if region else str(trial_id) for trial_id in self._running]

    @property
    def has_begun(self) -> bool:
        """Whether any trial was ever started."""
        return bool(self.tally.ended or self._running or self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether it has begun and is not finished."""
        return self.has_begun and bool(self._running or self.wants_trial())

    def wants_trial(self) -> bool:
        """Tell whether one more trial should start when there is room."""
        return self.tally.wants_trial(self.n_running)

    def seconds(self) -> float:
        """Return the seconds of all trials so far, those that run included."""
        return self.tally.seconds + sum(running.seconds() for running in self._running.values())

    def failure(self) -> SearchFailed | None:
        """Return the error of a study whose trials all break; None while it is not failing."""
        return self.tally.failure(self.experiment.region, self.layout.output)

    def resume(self) -> None:
        """Count what is stored; collect, adopt or start again what was running."""
        self.layout.jobs.mkdir(parents=True, exist_ok=True)
        self.layout.outputs.mkdir(exist_ok=True)
        trials = self.study.trials()
        for trial in trials:
            if trial.state is not TrialState.RUNNING:
                self.tally.add(trial)
        self.tally.forget_failures()
        if (
            self.tally.broken
            and not self.tally.finished
            and code_has_changed(self.study, self.layout)
        ):
            self.study.disregard(trial for trial in trials if trial.state is TrialState.BROKEN)
        for trial in trials:
            if trial.state is TrialState.RUNNING:
                self._resume_trial(trial)

    def _resume_trial(self, trial: Trial) -> None:
        folder = self.layout.folder(trial.id)
        job = self.driver.adopt(folder)
        if job is not None:
            self._add_running(trial, folder, job)
        elif not self._outcomes.store_result(trial, folder):
            self._waiting.append(trial)

    def start_trial(self) -> None:
        """Start the trial that waits for another job, or else a new one.

        Raises:
            DriverUnreachable: The trial waits for the next call.
        """
        trial = self._waiting.popleft() if self._waiting else self.study.ask()
        try:
            folder = prepare_folder(self.experiment, self.layout, trial, self.study.key(trial))
            job = self.driver.submit(job_request(self.experiment, self.layout, trial.id))
        except DriverUnreachable:
            self._waiting.appendleft(trial)
            raise
        self._add_running(trial, folder, job)

    def _add_running(self, trial: Trial, folder: TrialFolder, job: Job) -> None:
        self._running[trial.id] = RunningTrial(trial, folder, job, waiting=self.driver.detaches)
        self._record()
        self.observer.submitted(trial, self.counts())

    def collect(self, states: Mapping[Job, JobState]) -> None:
        """Store the trials that have ended; start lost jobs again; end jobs that overstay."""
        for running in list(self._running.values()):
            state = states[running.job]
            if state is JobState.GONE:
                self.driver.cancel([running.job])  # ends processes that the runner started
                self._settle(running)
            elif running.is_stuck():
                self._settle(running)
            elif state is JobState.FINISHED:
                self._finish(running)
            elif state is JobState.WAITING:
                running.waiting, running.started = True, time.time()
            else:
                self._note_started(running)
                self._end_overdue(running)
        self._ending.reap(states)

    def _note_started(self, running: RunningTrial) -> None:
        """Report a queued job that runs now."""
        if running.waiting:
            running.waiting = False
            self.observer.started(running.trial, self.counts())

    def _finish(self, running: RunningTrial) -> None:
        """Store the trial of a job that is about to end; watch the job until it has."""
        if self._outcomes.store_job_result(running):
            del self._running[running.trial.id]
            self._ending.add(running.job)

    def _settle(self, running: RunningTrial) -> None:
        """Store the trial of a job that is over, or let it start again."""
        del self._running[running.trial.id]
        lost = self._outcomes.settle(running)
        if lost is not None:
            self._waiting.append(lost)

    def _end_overdue(self, running: RunningTrial) -> None:
        """End a job that stays after its result, or runs past the time limit."""
        now, limit = time.time(), self.experiment.trial_timeout_s
        if not self.driver.detaches and running.folder.result.exists():
            running.result_since = running.result_since or now
            if now - running.result_since > EXIT_GRACE_S:
                self.driver.cancel([running.job])
        elif limit is not None and running.seconds() > limit and not running.ended_by:
            self._end(running, "timeout")

    def _end(self, running: RunningTrial, why: str) -> None:
        """End a job whose trial ends with it."""
        running.ended_by, running.ended_at = why, time.time()
        self.driver.end([running.job])

    def prune(self) -> bool:
        """Read new reports; end the jobs of trials that will not be good. True when it did."""
        if not self.study.prunes:
            return False
        ended = False
        for running in self._running.values():
            if not running.ended_by and self._has_bad_reports(running):
                self._end(running, "pruned")
                ended = True
        return ended

    def _has_bad_reports(self, running: RunningTrial) -> bool:
        """Store the new reports of a trial and ask the pruner."""
        if not running.new_reports() or running.folder.result.exists():
            return False
        reports = read_reports(running.folder.reports)
        running.trial = self.study.report(running.trial, reports)
        if reports and not math.isfinite(reports[max(reports)]):
            return True
        return self.study.should_prune(running.trial)

    def _count_ended(self, trial: Trial) -> None:
        self.tally.add(trial)
        self._record()
        self.observer.ended(trial, self.counts())

    def _record(self) -> None:
        self.records.update(
            self.tally.best,
            pending=self.n_running,
            complete=self.tally.complete,
            broken=self.tally.broken + self.tally.pruned,
        )

    def end_running(self) -> None:
        """End the running trials; they stay in the study as running and start again later."""
        self.driver.cancel(self.jobs)
        self._ending.clear()
        for running in list(self._running.values()):
            del self._running[running.trial.id]
            if not self._outcomes.store_result(running.trial, running.folder, values_only=True):
                running.folder.result.unlink(missing_ok=True)
