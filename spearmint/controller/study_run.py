"""Start, collect, retry and prune the trials of one study."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spearmint.budget import Durations, Running
from spearmint.controller.ending import EXIT_GRACE_S, EndingJobs
from spearmint.controller.events import SearchObserver, StudyCounts
from spearmint.controller.failures import Failures, retry_note
from spearmint.controller.limits import StudyLimits
from spearmint.controller.next_trials import NextTrials
from spearmint.controller.outcomes import Outcomes
from spearmint.controller.paused_trials import PausedTrials
from spearmint.controller.pruning import has_bad_reports
from spearmint.controller.running_trial import RunningTrial, ask_to_stop, divide, jobs_of, share_in
from spearmint.controller.signals import StopRequest
from spearmint.controller.submission import prepare_job
from spearmint.controller.tally import Tally
from spearmint.drivers import Driver, Job, JobState
from spearmint.errors import DriverUnreachable, QueueFull, SearchFailed, StorageError
from spearmint.layout import Layout, TrialFolder
from spearmint.model import Experiment, Trial, TrialState
from spearmint.requests.applying import retry
from spearmint.store.records import Records
from spearmint.store.study import Study
from spearmint.trial.attempts import add_attempt


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
    _next: NextTrials = field(init=False)
    _running: dict[int, RunningTrial] = field(default_factory=dict)
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
        self._next = NextTrials(
            self.study,
            self.layout,
            self.driver,
            self.observer,
            self.tally,
            self._paused,
            self._ending,
        )

    def obey(self, stop: StopRequest) -> None:
        """Let signals of ``stop`` end the computation of a proposal."""
        self._next.proposals.stop = stop

    def counts(self) -> StudyCounts:
        """Return the current counts."""
        queued = sum(running.waiting for running in self._running.values())
        return self.tally.counts(
            self.experiment.region, running=len(self._running) - queued, queued=queued
        )

    @property
    def jobs(self) -> list[Job]:
        """Jobs that have not ended, as far as known."""
        return [*jobs_of(self._running.values()), *self._ending.jobs]

    @property
    def n_jobs(self) -> int:
        """Number of jobs that are queued or run trials."""
        is_batch = self.experiment.batch > 1  # otherwise there can be thousands
        return len(jobs_of(self._running.values())) if is_batch else self.n_running

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
        return bool(self.tally.ended or self._running or self._next.waiting)

    @property
    def is_open(self) -> bool:
        """Whether the study has begun and is not finished."""
        return self.has_begun and bool(self._running or self.wants_trial())

    def wants_trial(self) -> bool:
        """Return whether one more trial should start, or a paused one resume, if there is room."""
        return self._next.are_wanted(self.n_running)

    def resumes_paused(self) -> bool:
        """Return whether a paused trial can continue, also if there are enough new trials."""
        return self._next.resume_paused()

    def seconds(self) -> float:
        """Return the total seconds of all trials, including the running ones."""
        return self.tally.seconds + sum(running.charged_s() for running in self._running.values())

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
        if self.tally.ended:  # at most: the trials of a job share its time
            self.durations.known = self.tally.seconds / self.tally.ended * self.experiment.batch
        running = self.study.running()
        self._failures.resume(self.tally, retried=self.retries_broken)
        if self.retries_broken:
            n = retry(self.study)
            self.observer.note(retry_note(n, self.tally, len(running)))
        adopted: dict[Path, Job | None] = {}  # by folder: trials of a job have the same
        for trial in running:
            self._resume_trial(trial, adopted)
            self._report_ended()
        divide(self._running.values())

    def _resume_trial(self, trial: Trial, adopted: dict[Path, Job | None]) -> None:
        folder, job_folder = self.layout.folder(trial.id), self.layout.job(trial.id)
        if job_folder.path not in adopted:
            adopted[job_folder.path] = self.driver.adopt(job_folder)
        job = adopted[job_folder.path]
        if job is not None:
            self._add_running(trial, job, job_folder, share=share_in(job_folder))
        elif not self._outcomes.store_result(trial, folder):
            end, fidelity = "ended while no controller ran", self.experiment.fidelity
            failure = self._outcomes.take_failure_of_all(trial, folder)
            if failure:
                end, trial = failure, self.study.add_loss(trial, alone=True)
            elif fidelity is not None and trial.rungs and folder.result.exists():
                end = fidelity.pause(len(trial.rungs))  # its next part did not start
            add_attempt(folder, end)
            self._next.waiting.append(trial)

    def start_job(self, n_free: int = 1) -> None:
        """Start the trials of a job in one of the free places: waiting ones, or else new ones.

        Raises:
            DriverUnreachable, QueueFull: The next call starts the trials.
            ProposalStopped: A signal requested a stop; the next call starts what was proposed.
        """
        trials = self._next.of_a_job(n_free, self._running)
        if not trials:
            return
        try:
            request = prepare_job(self.experiment, self.layout, trials, self.study.key)
            job = self.driver.submit(request)
        except (DriverUnreachable, QueueFull):
            self._next.waiting.extendleft(reversed(trials))
            raise
        for trial in trials:
            self._add_running(trial, job, request.folder, share=1.0 / len(trials))

    def prepare(self, most: int) -> bool:
        """Propose a trial ahead of need, unless ``most`` are ready; return whether one was.

        Raises:
            ProposalStopped: A signal requested a stop.
        """
        return self._next.prepare(most, self.n_running)

    def _add_running(
        self, trial: Trial, job: Job, job_folder: TrialFolder, share: float = 1.0
    ) -> None:
        folder, waiting = self.layout.folder(trial.id), self.driver.detaches
        self._running[trial.id] = RunningTrial(trial, folder, job, job_folder, share, waiting)
        self._record()
        self.observer.submitted(trial, self.counts())

    def has_results(self) -> bool:
        """Return whether a trial has a result while its job trains others."""
        return self.experiment.batch > 1 and any(r.has_new_result() for r in self._running.values())

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
        self._outcomes.forget_ends()
        for running in list(self._running.values()):
            state = states[running.job]
            running.refresh()
            if state is JobState.GONE:
                self.driver.cancel([running.job])  # terminates leftover processes
                self._settle(running)
            elif running.is_stuck():
                self._settle(running)
            elif state is JobState.FINISHED or running.has_new_result():
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
        """Store a trial that has its result, before its job ends."""
        if self._outcomes.store_job_result(running):
            self._leave(running)
        elif running.is_in_batch and running.outlasts_result(EXIT_GRACE_S):
            self._terminate(running, "ended")

    def _leave(self, running: RunningTrial) -> None:
        """Remove an ended trial; watch its job until it ends, if this was the last trial."""
        del self._running[running.trial.id]
        others = divide(self._running.values())[running.job] if running.is_in_batch else 0
        watch = self._ending.note if others else self._ending.add
        watch(running.job, running.trial.id)

    def _settle(self, running: RunningTrial) -> None:
        """Store the trial of a job that ended, or schedule a retry."""
        del self._running[running.trial.id]
        self._ending.forget(running.job)
        lost = self._outcomes.settle(running)
        if lost is not None:
            self._outcomes.take_failure_of_all(running.trial, running.folder)
            self._next.waiting.append(lost)

    def _terminate_overdue(self, running: RunningTrial) -> None:
        """Terminate a job that does not exit after its result, or exceeds the trial timeout."""
        limit = self.experiment.trial_timeout_s
        if not self.driver.detaches and running.job_folder.result.exists():
            if running.result_age() > EXIT_GRACE_S:
                self.driver.cancel([running.job])
        elif limit is not None and running.seconds() > limit and not running.ended_by:
            self._terminate(running, "timeout")

    def _terminate(self, running: RunningTrial, why: str) -> None:
        """Terminate a job and note why, which decides the state of its trials."""
        self.driver.end([running.job])  # raises if the queue does not answer
        for other in self._running.values():
            if other.job == running.job:
                other.ended_by, other.ended_at = why, time.time()

    def stop(self, trial_id: int, reason: str) -> bool:
        """Terminate the job of a trial, without a retry; return whether the trial has ended.

        The other trials of the job continue.

        Raises:
            DriverUnreachable: The next call does it.
        """
        self._stopped.add(trial_id)
        running = self._running.get(trial_id)
        if running is not None and running.is_in_batch:
            self._leave(running)
            if not self._outcomes.store_job_result(running):
                self._outcomes.store_stopped(running.trial, reason, running.charged_s())
            ask_to_stop(running.folder)
        elif running is not None:
            if not running.ended_by:
                self._terminate(running, "stopped")
                running.stop_reason = reason
            return False
        for trial in self._next.remove(trial_id):
            self._outcomes.store_stopped(trial, reason, 0.0)
        self._report_ended()
        return True

    def prune(self) -> bool:
        """Read new reports and terminate the jobs of poor trials; return whether any was."""
        if not self.study.prunes:
            return False
        try:
            with self.study.one_transaction():
                pruned = self._prune()
        except StorageError:
            self._ended.clear()  # not stored
            raise
        for running in pruned:
            if running.is_in_batch:
                ask_to_stop(running.folder)
        self._report_ended()
        return bool(pruned)

    def _prune(self) -> list[RunningTrial]:
        """Terminate the jobs of poor trials; a job of several trials continues without them."""
        pruned = list[RunningTrial]()
        for running in list(self._running.values()):
            if not running.ended_by and has_bad_reports(self.study, running):
                pruned.append(running)
                if running.is_in_batch:
                    self._leave(running)
                    self._outcomes.prune(running)
                else:
                    self._terminate(running, "pruned")
        return pruned

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
        self.durations.add(trial.last_s * self.experiment.batch)  # at most, as for earlier runs
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
