"""The trials of one study: started, collected, retried, ended early."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.controller.ending import EXIT_GRACE_S, Leaving
from spearmint.controller.events import Progress, Watcher
from spearmint.controller.running_trial import Active, tail_of
from spearmint.drivers import Driver, Job, JobRequest, JobState
from spearmint.errors import DriverUnreachable, SearchFailed
from spearmint.formatting import indented, plain
from spearmint.layout import Layout, TrialFolder, write_json
from spearmint.model import Experiment, Result, Trial, TrialState, best_trial, is_better
from spearmint.store.records import Records
from spearmint.store.study import Study
from spearmint.trial.languages import to_entries, wrappers
from spearmint.trial.reporting import read_reports
from spearmint.trial.results import read_result

_LATER_FACTOR = 10  # broken trials in a row that end a search which had successes


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLimits:
    """When a study has enough trials.

    Attributes:
        finished: Complete and pruned trials, earlier runs included.
        broken: The study fails when the first ``broken`` trials all break, or ten times as many
            in a row later.
        patience: Complete or pruned trials in a row without a better value; None for any.
        target: A value that is good enough; None for none.
    """

    finished: int = 10000
    broken: int = 5
    patience: int | None = None
    target: float | None = None


@dataclass(slots=True)
class StudyLoop:
    """Runs the trials of one study; every step may be the last before a kill.

    The order makes it safe: a trial is stored before its folder is written, its folder before
    its job starts, its result stands in a file before it is stored, and is stored again after
    a kill in between.
    """

    experiment: Experiment
    layout: Layout
    study: Study
    driver: Driver
    limits: StudyLimits
    records: Records
    watcher: Watcher
    _active: dict[int, Active] = field(default_factory=dict)
    _leaving: Leaving = field(init=False)
    _waiting: deque[Trial] = field(default_factory=deque)
    _complete: int = 0
    _pruned: int = 0
    _broken: int = 0
    _broken_in_a_row: int = 0
    _since_best: int = 0
    _seconds: float = 0.0
    _last_broken: Trial | None = None
    _best: Trial | None = None

    def __post_init__(self) -> None:
        self._leaving = Leaving(self.driver)

    def progress(self) -> Progress:
        """Return the figures of this moment."""
        return Progress(
            region=self.experiment.region,
            complete=self._complete,
            pruned=self._pruned,
            broken=self._broken,
            running=len(self._active) - self._n_queued(),
            queued=self._n_queued(),
            seconds=self._seconds,
            best=self._best,
        )

    def _n_queued(self) -> int:
        return sum(active.waiting for active in self._active.values())

    @property
    def jobs(self) -> list[Job]:
        """Jobs that run or may have ended."""
        return [*(active.job for active in self._active.values()), *self._leaving.jobs]

    @property
    def n_active(self) -> int:
        """Trials whose job is queued or runs."""
        return len(self._active)

    @property
    def is_busy(self) -> bool:
        """Whether there is something to wait for."""
        return bool(self.jobs)

    @property
    def labels(self) -> list[str]:
        """Their trials, for people: ``7``, or ``us 7``."""
        region = self.experiment.region
        return [f"{region} {trial_id}" if region else str(trial_id) for trial_id in self._active]

    @property
    def has_begun(self) -> bool:
        """Whether any trial was ever started."""
        return bool(self.n_finished or self._broken or self._active or self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether it has begun and is not finished."""
        return self.has_begun and bool(self._active or self.wants_trial())

    @property
    def n_finished(self) -> int:
        """Trials that gave a value or were pruned."""
        return self._complete + self._pruned

    def seconds(self) -> float:
        """Return the seconds of all trials so far, those that run included."""
        return self._seconds + sum(active.seconds() for active in self._active.values())

    def resume(self) -> None:
        """Count what is stored; collect, adopt or start again what was running."""
        self.layout.jobs.mkdir(parents=True, exist_ok=True)
        self.layout.outputs.mkdir(exist_ok=True)
        trials = self.study.trials()
        for trial in trials:
            if trial.state is not TrialState.RUNNING:
                self._count(trial)
        self._broken_in_a_row, self._last_broken = 0, None  # this run gets its own tries
        if self._broken and not self.n_finished and self._is_mended():
            self.study.disregard(trial for trial in trials if trial.state is TrialState.BROKEN)
        for trial in trials:
            if trial.state is not TrialState.RUNNING:
                continue
            folder = self.layout.folder(trial.id)
            job = self.driver.adopt(folder)
            if job is not None:
                self._activate(trial, folder, job)
            elif not self._store_result(trial, folder):
                self._waiting.append(trial)

    def _is_mended(self) -> bool:
        """Tell whether the user's code was changed after the last trial broke.

        Then trials that all broke did so by a mistake in it, not by their parameters.
        """
        _, ended = self.study.span()
        root, experiment = self.layout.root, self.experiment
        files = {*root.glob("*.py"), *wrappers(experiment.language, root, experiment.name)}
        changed = max((path.stat().st_mtime for path in files if path.is_file()), default=0.0)
        return ended is not None and changed > ended.timestamp()

    def wants_trial(self) -> bool:
        """Tell whether one more trial should start when there is room."""
        return self.n_finished + len(self._active) < self.limits.finished and not (
            self.is_failing() or self.stop_reason()
        )

    def stop_reason(self) -> str:
        """Return which rule has ended the study before its last trial; empty while none has."""
        best, target, patience = self._best, self.limits.target, self.limits.patience
        maximize = self.experiment.maximize
        if (
            target is not None
            and best is not None
            and best.value is not None
            and math.isfinite(best.value)  # an infinite value of either sign is the worst
            and not is_better(target, best.value, maximize=maximize)
        ):
            return f"the target {target:g} is reached"
        if patience is not None and self._since_best >= patience:
            return f"no better value in the last {self._since_best} trials"
        return ""

    def is_failing(self) -> bool:
        """Tell whether so many trials broke in a row that no more should start."""
        factor = 1 if self.n_finished == 0 else _LATER_FACTOR
        return self._broken_in_a_row >= self.limits.broken * factor

    def failure(self) -> SearchFailed | None:
        """Return what is wrong when :meth:`is_failing`."""
        if not self.is_failing() or self._last_broken is None:
            return None
        trial = self._last_broken
        output, reason = self.layout.output(trial.id), plain(trial.reason)
        which = "first" if self.n_finished == 0 else "last"
        where = f"{self.experiment.region}: " if self.experiment.region else ""
        return SearchFailed(
            f"{where}the {which} {self._broken_in_a_row} trials all broke; "
            f"the last one, trial {trial.id}: {reason}\n{indented(trial.tail)}".rstrip(),
            f"Its whole output: {output}\nMend it, then run the same command again.",
        )

    def start_trial(self) -> None:
        """Start what waits for another job, or else a new trial.

        Raises:
            DriverUnreachable: The trial waits for the next call.
        """
        trial = self._waiting.popleft() if self._waiting else self.study.ask()
        try:
            self._submit(trial)
        except DriverUnreachable:
            self._waiting.appendleft(trial)
            raise

    def _submit(self, trial: Trial) -> None:
        """Write the folder of ``trial`` and start a job for it."""
        folder = self.layout.folder(trial.id)
        folder.path.mkdir(exist_ok=True)
        for left in (folder.reports, folder.result):
            left.unlink(missing_ok=True)
        spec = {
            "key": self.study.key(trial),
            "job_id": trial.id,
            "directory": str(self.layout.root),
            "name": self.experiment.name,
            "region": self.experiment.region,
            "language": self.experiment.language,
            "params": to_entries(self.experiment.variables, trial.params),
        }
        write_json(folder.spec, spec)
        request = job_request(self.experiment, self.layout, trial.id)
        self._activate(trial, folder, self.driver.submit(request))

    def _activate(self, trial: Trial, folder: TrialFolder, job: Job) -> None:
        self._active[trial.id] = Active(trial, folder, job, waiting=self.driver.detaches)
        self._record()
        self.watcher.submitted(trial, self.progress())

    def collect(self, states: Mapping[Job, JobState]) -> None:
        """Store what has ended; start lost jobs again; end what overstays."""
        for active in list(self._active.values()):
            state = states[active.job]
            if state is JobState.GONE:
                self.driver.cancel([active.job])  # ends what the runner left behind
                self._settle(active)
            elif active.is_stuck():
                self._settle(active)
            elif state is JobState.FINISHED:
                self._finish(active)
            elif state is JobState.WAITING:
                active.waiting, active.started = True, time.time()
            else:
                self._see_running(active)
                self._end_overdue(active)
        self._leaving.see_off(states)

    def _see_running(self, active: Active) -> None:
        """Note that a queued job has started."""
        if active.waiting:
            active.waiting = False
            self.watcher.started(active.trial, self.progress())

    def _finish(self, active: Active) -> None:
        """Store the trial of a job that is about to end; look after the job until it has."""
        if self._store_result(active.trial, active.folder, values_only=bool(active.ended_by)):
            del self._active[active.trial.id]
            self._leaving.add(active.job)

    def prune(self) -> bool:
        """Read new reports; end the jobs of trials that will not be good. True when it did."""
        ended = False
        if not self.study.prunes:
            return ended
        for active in self._active.values():
            if not active.ended_by and self._has_bad_reports(active):
                self._end(active, "pruned")
                ended = True
        return ended

    def _has_bad_reports(self, active: Active) -> bool:
        """Store the new reports of a trial, ask the pruner."""
        if not active.new_reports() or active.folder.result.exists():
            return False
        reports = read_reports(active.folder.reports)
        active.trial = self.study.report(active.trial, reports)
        if reports and not math.isfinite(reports[max(reports)]):
            return True
        return self.study.should_prune(active.trial)

    def _settle(self, active: Active) -> None:
        """Store the trial of a job that is over, or start it again."""
        del self._active[active.trial.id]
        if self._store_result(active.trial, active.folder, values_only=bool(active.ended_by)):
            return
        seconds = active.seconds()
        if active.ended_by == "pruned":
            self._ended(self.study.prune(active.trial, seconds))
            return
        if active.ended_by == "timeout":
            limit = self.experiment.trial_timeout_s
            self._break(active, f"ran past the time limit of {limit:g} s", seconds)
            return
        end = self.driver.explain(active.job)
        if not end.again:
            self._break(active, end.text, seconds)
            return
        trial = self.study.add_loss(active.trial)
        if trial.lost > self.experiment.max_retries:
            times = f", {trial.lost} times" if trial.lost > 1 else ""
            active.trial = trial
            self._break(active, end.text + times, seconds)
            return
        self.watcher.note(f"{trial.label} was lost ({end.text}) and runs again")
        self._waiting.append(trial)

    def _end_overdue(self, active: Active) -> None:
        now, limit = time.time(), self.experiment.trial_timeout_s
        if not self.driver.detaches and active.folder.result.exists():
            active.result_since = active.result_since or now
            if now - active.result_since > EXIT_GRACE_S:
                self.driver.cancel([active.job])
        elif limit is not None and active.seconds() > limit and not active.ended_by:
            self._end(active, "timeout")

    def _end(self, active: Active, why: str) -> None:
        """End a job whose trial ends with it."""
        active.ended_by, active.ended_at = why, time.time()
        self.driver.end([active.job])

    def _store_result(
        self, trial: Trial, folder: TrialFolder, *, values_only: bool = False
    ) -> bool:
        """Store what stands in the folder's result file; False when there is none of this trial.

        Args:
            values_only: The job was ended by us: a reason there is only how it took that.
        """
        result = read_result(folder, self.study.key(trial))
        if result is None or (values_only and result.value is None):
            return False
        if result.value is None:
            self._ended(self.study.break_(trial, result, tail_of(self.layout.output(trial.id))))
        else:
            self._ended(self.study.complete(trial, result))
        return True

    def _break(self, active: Active, reason: str, seconds: float) -> None:
        result = Result(value=None, reason=reason, seconds=seconds)
        tail = tail_of(self.layout.output(active.trial.id))
        self._ended(self.study.break_(active.trial, result, tail))

    def _ended(self, trial: Trial) -> None:
        self._count(trial)
        self._record()
        self.watcher.ended(trial, self.progress())

    def _count(self, trial: Trial) -> None:
        """Add an ended trial to the figures."""
        self._seconds += trial.seconds or 0.0
        if trial.state is TrialState.BROKEN:
            self._broken += 1
            self._broken_in_a_row += 1
            self._last_broken = trial
            return
        self._broken_in_a_row = 0
        self._since_best += 1
        if trial.state is TrialState.PRUNED:
            self._pruned += 1
            return
        self._complete += 1
        rivals = [trial] if self._best is None else [self._best, trial]
        best = best_trial(rivals, maximize=self.experiment.maximize)
        if best is trial:
            self._best, self._since_best = trial, 0

    def _record(self) -> None:
        self.records.update(
            self._best,
            pending=len(self._active),
            complete=self._complete,
            broken=self._broken + self._pruned,
        )

    def end_active(self) -> None:
        """End the running trials; they stay in the study as running and start again later."""
        self.driver.cancel(self.jobs)
        self._leaving.clear()
        for active in list(self._active.values()):
            del self._active[active.trial.id]
            if not self._store_result(active.trial, active.folder, values_only=True):
                active.folder.result.unlink(missing_ok=True)


def job_request(experiment: Experiment, layout: Layout, trial_id: int) -> JobRequest:
    """Return what a driver is asked to run for a trial."""
    return JobRequest(
        name=f"{experiment.study_name}-{trial_id}",
        folder=layout.folder(trial_id),
        directory=layout.root,
        output=layout.output(trial_id),
    )
