"""Start, collect, retry and prune the trials of one study."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.budget import Durations, Running
from spearmint.controller.ending import EXIT_GRACE_S, EndingJobs
from spearmint.controller.events import SearchObserver, StudyCounts
from spearmint.controller.failures import Failures, retry_note
from spearmint.controller.limits import StudyLimits
from spearmint.controller.outcomes import Outcomes
from spearmint.controller.paused_trials import PausedTrials
from spearmint.controller.proposals import Proposals
from spearmint.controller.running_trial import RunningTrial
from spearmint.controller.signals import StopRequest
from spearmint.controller.submission import job_request, prepare_folder
from spearmint.controller.tally import Tally
from spearmint.drivers import Driver, Job, JobState
from spearmint.errors import DriverUnreachable, QueueFull, SearchFailed, StorageError
from spearmint.layout import Layout, TrialFolder
from spearmint.model import Experiment, Trial, TrialState
from spearmint.requests.applying import retry
from spearmint.store.records import Records
from spearmint.store.study import Study
from spearmint.trial.attempts import add_attempt
from spearmint.trial.reporting import read_reports


@dataclass(slots=True)
class StudyRun:
    """Runs the trials of one study. The controller can be killed at any step.

    The order of writes makes this safe: the trial is stored before its folder is written, the
    folder is written before the job starts, and the result is a file before it is stored. If a
    killed controller did not store a result, the next one does.
    """

    experiment: Experiment
    layout: Layout
    study: Study
    driver: Driver
    limits: StudyLimits
    records: Records
    observer: SearchObserver
    retries_broken: bool = False
    tally: Tally = field(init=False)
    durations: Durations = field(default_factory=Durations)
    _failures: Failures = field(init=False)
    _outcomes: Outcomes = field(init=False)
    _ending: EndingJobs = field(init=False)
    _paused: PausedTrials = field(init=False)
    _proposals: Proposals = field(init=False)
    _running: dict[int, RunningTrial] = field(default_factory=dict)
    _waiting: deque[Trial] = field(default_factory=deque)
    _stopped: set[int] = field(default_factory=set)  # by users
    _ended: list[tuple[Trial, StudyCounts]] = field(default_factory=list)  # not reported yet

    def __post_init__(self) -> None:
        self.tally = Tally(limits=self.limits, maximize=self.experiment.maximize)
        self._failures = Failures(self.study, self.layout)
        self._paused = PausedTrials(self.study)
        self._outcomes = Outcomes(
            self.study,
            self.layout,
            self.driver,
            self.observer,
            on_end=self._count_ended,
            on_success=self._forgive,
            goal_of=self._paused.goal,
        )
        self._ending = EndingJobs(self.driver)
        self._proposals = Proposals(self.study)

    def obey(self, stop: StopRequest) -> None:
        """Let signals of ``stop`` end the computation of a proposal."""
        self._proposals.stop = stop

    def counts(self) -> StudyCounts:
        """Return the current counts."""
        queued = sum(running.waiting for running in self._running.values())
        return self.tally.counts(
            self.experiment.region, running=len(self._running) - queued, queued=queued
        )

    @property
    def jobs(self) -> list[Job]:
        """Jobs that have not ended, as far as known."""
        return [*(running.job for running in self._running.values()), *self._ending.jobs]

    @property
    def n_running(self) -> int:
        """Number of trials whose job is queued or runs."""
        return len(self._running)

    @property
    def is_busy(self) -> bool:
        """Whether any job has not ended."""
        return bool(self.jobs)

    @property
    def labels(self) -> list[str]:
        """Names of the running trials in messages: ``7``, or ``us 7`` in a region."""
        region = self.experiment.region
        return [f"{region} {trial_id}" if region else str(trial_id) for trial_id in self._running]

    @property
    def has_begun(self) -> bool:
        """Whether any trial was started, including earlier runs."""
        return bool(self.tally.ended or self._running or self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether the study has begun and is not finished."""
        return self.has_begun and bool(self._running or self.wants_trial())

    def wants_trial(self) -> bool:
        """Return whether one more trial should start, or a paused one resume, if there is room."""
        return self.tally.wants_trial(self.n_running) or self.resumes_paused()

    def resumes_paused(self) -> bool:
        """Return whether a paused trial can continue, also if there are enough new trials."""
        can = self._paused.next(self._ending.trials) is not None
        return can and not (self.tally.is_failing() or self.tally.stop_reason())

    def seconds(self) -> float:
        """Return the total seconds of all trials, including the running ones."""
        return self.tally.seconds + sum(running.seconds() for running in self._running.values())

    def running_trials(self) -> list[Running]:
        """Return how long each running trial has run; 0 s while its job is queued."""
        return [Running(each.seconds(), self.durations) for each in self._running.values()]

    def failure(self) -> SearchFailed | None:
        """Return the error of a study with too many failed trials in a row; None otherwise."""
        return self.tally.failure(self.experiment.region, self.layout.output)

    def resume(self) -> None:
        """Count the stored trials; collect, adopt or restart the running ones."""
        self.layout.jobs.mkdir(parents=True, exist_ok=True)
        self.layout.outputs.mkdir(exist_ok=True)
        self.study.expect(self.limits.finished)
        self.tally.restore(self.study)
        self._paused.restore()
        self.durations.known = self.tally.seconds / self.tally.ended if self.tally.ended else None
        running = self.study.running()
        self._failures.resume(self.tally, retried=self.retries_broken)
        if self.retries_broken:
            n = retry(self.study)
            self.observer.note(retry_note(n, self.tally, len(running)))
        for trial in running:
            self._resume_trial(trial)
            self._report_ended()

    def _resume_trial(self, trial: Trial) -> None:
        folder = self.layout.folder(trial.id)
        job = self.driver.adopt(folder)
        if job is not None:
            self._add_running(trial, folder, job)
        elif not self._outcomes.store_result(trial, folder):
            end, fidelity = "ended while no controller ran", self.experiment.fidelity
            if fidelity is not None and trial.rungs and folder.result.exists():
                end = fidelity.pause(len(trial.rungs))  # its next part did not start
            add_attempt(folder, end)
            self._waiting.append(trial)

    def start_trial(self, n_free: int = 1) -> None:
        """Start a trial that waits for a retry, or else a new trial, in one of the free places.

        Raises:
            DriverUnreachable, QueueFull: The next call starts the trial.
            ProposalStopped: A signal requested a stop; nothing was stored.
        """
        trial = self._next_trial(n_free)
        if trial is None:
            return
        try:
            folder = prepare_folder(self.experiment, self.layout, trial, self.study.key(trial))
            job = self.driver.submit(job_request(self.experiment, self.layout, trial.id))
        except (DriverUnreachable, QueueFull):
            self._waiting.appendleft(trial)
            raise
        self._add_running(trial, folder, job)

    def _next_trial(self, n_free: int) -> Trial | None:
        """Return a trial that waits for a retry, else a paused one, else a new one.

        None if a paused trial cannot be resumed yet.
        """
        if self._waiting:
            return self._waiting.popleft()
        paused = self._paused.next(self._ending.trials)
        if paused is None:
            asked = self._proposals.ask(n_free)
            self._note_notices()
            return asked
        folder = self.layout.folder(paused)
        if self._paused.is_from_earlier(paused) and (job := self.driver.adopt(folder)):
            self._ending.add(job, paused)  # its last job is about to end
            return None
        trial = self._paused.resume(paused)
        if trial is not None:
            self.tally.resume_paused()
        return trial

    def _note_notices(self) -> None:
        """Report what the chooser has to say, after the name of the region if there are several."""
        region = self.experiment.region
        for text in self.study.notices():
            self.observer.note(f"{region}: {text}" if region else text)

    def prepare(self, most: int) -> bool:
        """Propose a trial ahead of need, unless ``most`` are ready; return whether one was.

        Raises:
            ProposalStopped: A signal requested a stop.
        """
        return self.tally.wants_trial(self.n_running) and self._proposals.prepare(most)

    def _add_running(self, trial: Trial, folder: TrialFolder, job: Job) -> None:
        self._running[trial.id] = RunningTrial(trial, folder, job, waiting=self.driver.detaches)
        self._record()
        self.observer.submitted(trial, self.counts())

    def collect(self, states: Mapping[Job, JobState]) -> None:
        """Store ended trials, retry lost jobs, and terminate jobs that exceed a timeout."""
        try:
            with self.study.one_transaction():
                self._collect(states)
        except StorageError:
            self._ended.clear()  # not stored
            raise
        finally:
            self._report_ended()
        self._ending.reap(states)

    def _collect(self, states: Mapping[Job, JobState]) -> None:
        for running in list(self._running.values()):
            state = states[running.job]
            if state is JobState.GONE:
                self.driver.cancel([running.job])  # terminates leftover processes
                self._settle(running)
            elif running.is_stuck():
                self._settle(running)
            elif state is JobState.FINISHED:
                self._finish(running)
            elif state is JobState.WAITING:
                running.requeue()
            else:
                self._note_started(running)
                self._terminate_overdue(running)

    def _note_started(self, running: RunningTrial) -> None:
        """Report that a queued job has started."""
        if running.waiting:
            running.waiting = False
            self.observer.started(running.trial, self.counts())

    def _finish(self, running: RunningTrial) -> None:
        """Store the trial of a job that is about to end, and watch the job until it ends."""
        if self._outcomes.store_job_result(running):
            del self._running[running.trial.id]
            self._ending.add(running.job, running.trial.id)

    def _settle(self, running: RunningTrial) -> None:
        """Store the trial of a job that ended, or schedule a retry."""
        del self._running[running.trial.id]
        lost = self._outcomes.settle(running)
        if lost is not None:
            self._waiting.append(lost)

    def _terminate_overdue(self, running: RunningTrial) -> None:
        """Terminate a job that does not exit after its result, or exceeds the trial timeout."""
        now, limit = time.time(), self.experiment.trial_timeout_s
        if not self.driver.detaches and running.folder.result.exists():
            running.result_since = running.result_since or now
            if now - running.result_since > EXIT_GRACE_S:
                self.driver.cancel([running.job])
        elif limit is not None and running.seconds() > limit and not running.ended_by:
            self._terminate(running, "timeout")

    def _terminate(self, running: RunningTrial, why: str) -> None:
        """Terminate a job and note why, which decides the state of its trial."""
        self.driver.end([running.job])  # raises if the queue does not answer
        running.ended_by, running.ended_at = why, time.time()

    def stop(self, trial_id: int, reason: str) -> bool:
        """Terminate the job of a trial, without a retry; return whether the trial has ended.

        Raises:
            DriverUnreachable: The next call terminates it.
        """
        self._stopped.add(trial_id)
        running = self._running.get(trial_id)
        if running is not None:
            if not running.ended_by:
                self._terminate(running, "stopped")
                running.stop_reason = reason
            return False
        waiting = [trial for trial in self._waiting if trial.id == trial_id]
        if (paused := self._paused.remove(trial_id)) is not None:
            self.tally.resume_paused()
            waiting.append(paused)
        for trial in waiting:
            if trial in self._waiting:
                self._waiting.remove(trial)
            self._outcomes.store_stopped(trial, reason, 0.0)
            self._report_ended()
        return True

    def prune(self) -> bool:
        """Read new reports and terminate the jobs of poor trials; return whether any was."""
        if not self.study.prunes:
            return False
        with self.study.one_transaction():
            return self._prune()

    def _prune(self) -> bool:
        pruned = False
        for running in self._running.values():
            if not running.ended_by and self._has_bad_reports(running):
                self._terminate(running, "pruned")
                pruned = True
        return pruned

    def _has_bad_reports(self, running: RunningTrial) -> bool:
        """Store the new reports of a trial, and return whether to prune it."""
        if not running.new_reports() or running.folder.result.exists():
            return False
        reports = read_reports(running.folder.reports)
        running.trial = self.study.report(running.trial, reports)
        if reports and not math.isfinite(reports[max(reports)]):
            return True
        return self.study.should_prune(running.trial)

    def _forgive(self) -> None:
        """Report failures that no longer count, because a trial succeeds now."""
        if n := self._failures.succeed():
            self.observer.note(
                f"A trial succeeds where all failed: the failures of {n} earlier trials no longer "
                "count against their points. Rerun with --retry-broken to repeat them."
            )

    def _count_ended(self, trial: Trial) -> None:
        is_failure = trial.id not in self._stopped
        if trial.state is TrialState.BROKEN and is_failure:
            self._failures.add(trial)
        self.tally.add(trial, is_failure=is_failure)
        self._paused.add(trial, counts=is_failure or trial.state is not TrialState.BROKEN)
        if text := self._paused.warning(trial):
            self.observer.note(text)
        self.durations.add((trial.seconds or trial.earlier_s) - trial.earlier_s)
        self._record()
        self._ended.append((trial, self.counts()))

    def _report_ended(self) -> None:
        """Report the trials that ended, after they are stored."""
        for trial, counts in self._ended:
            self.observer.ended(trial, counts)
        self._ended.clear()

    def _record(self) -> None:
        self.records.update(
            self.tally.best,
            pending=self.n_running,
            complete=self.tally.complete,
            broken=self.tally.broken + self.tally.pruned + self.tally.paused,
        )

    def end_running(self) -> None:
        """Terminate the running trials, whose state stays: the next run restarts them."""
        self.driver.cancel(self.jobs)
        self._ending.clear()
        for running in list(self._running.values()):
            del self._running[running.trial.id]
            if not self._outcomes.store_result(running.trial, running.folder, values_only=True):
                running.folder.result.unlink(missing_ok=True)
        self._report_ended()
