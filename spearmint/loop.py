"""The loop of a search: collect results, ask the chooser, submit, wait."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Protocol

from spearmint.drivers import Driver, Job, JobRequest, JobState
from spearmint.errors import SearchFailed
from spearmint.languages import to_entries
from spearmint.layout import Layout, TrialFolder, read_json, write_json
from spearmint.model import Experiment, Result, Trial, TrialState
from spearmint.records import Records
from spearmint.results import read_result
from spearmint.study import Study, best_trial

_SLICE_S = 0.2  # how soon Ctrl-C is noticed
_EXIT_GRACE_S = 30.0  # a job may live on this long after its result stands
_TAIL_LINES, _TAIL_BYTES = 20, 8192
_LATER_FACTOR = 10  # broken trials in a row that end a search which had successes


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to stop, and how much to run at once.

    Attributes:
        finished: Complete trials in the study after which the search is done.
        broken: The search fails when the first ``broken`` trials all break, or ten times as
            many in a row later.
        polling_s: Seconds between two polls of the driver at most.
    """

    concurrent: int = 1
    finished: int = 10000
    broken: int = 5
    polling_s: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Figures of the search at one moment."""

    complete: int
    broken: int
    running: int
    best: Trial | None


class Watcher(Protocol):
    """Is told what happens; shows it."""

    def submitted(self, trial: Trial, progress: Progress) -> None:
        """A job of ``trial`` was started or found running."""

    def ended(self, trial: Trial, progress: Progress) -> None:
        """A trial is complete or broken."""

    def note(self, text: str) -> None:
        """Something else that people should know."""


@dataclass(slots=True)
class _Active:
    """A trial with a living job."""

    trial: Trial
    folder: TrialFolder
    job: Job
    started: float
    result_since: float | None = None
    timed_out: bool = False


@dataclass(slots=True)
class Stop:
    """How far the user wants to stop: set by signals, read by the loop."""

    asking: bool = False
    now: bool = False


@dataclass(slots=True)
class Loop:
    """Runs one search to its end; every step may be the last before a kill.

    The order makes it safe: a trial is stored before its folder is written, its folder before
    its job starts, its result stands in a file before it is stored, and is stored again after
    a kill in between.
    """

    experiment: Experiment
    layout: Layout
    study: Study
    driver: Driver
    limits: Limits
    records: Records
    watcher: Watcher
    stop: Stop = field(default_factory=Stop)
    _active: dict[int, _Active] = field(default_factory=dict)
    _complete: int = 0
    _broken: int = 0
    _broken_in_a_row: int = 0
    _last_broken: Trial | None = None
    _best: Trial | None = None
    _told_stop: bool = False
    _waiting: deque[Trial] = field(default_factory=deque)

    def run(self) -> Progress:
        """Search until a limit or a stop; return the last figures.

        Raises:
            SearchFailed: Trials break one after the other.
            StorageError, DriverError: See there; what runs goes on and is found again.
        """
        self.layout.jobs.mkdir(exist_ok=True)
        self.layout.outputs.mkdir(exist_ok=True)
        self._resume()
        while not self.stop.now:
            self._collect()
            self._fill()
            if not self._active:
                break
            self._tell_stop()
            self._wait()
        if self.stop.now:
            self._end_active()
        self._check_broken()
        return self.progress()

    def progress(self) -> Progress:
        """Return the figures of this moment."""
        return Progress(
            complete=self._complete,
            broken=self._broken,
            running=len(self._active),
            best=self._best,
        )

    def _resume(self) -> None:
        """Count what is stored; collect, adopt or start again what was running."""
        trials = self.study.trials()
        self._complete = sum(trial.state is TrialState.COMPLETE for trial in trials)
        self._broken = sum(trial.state is TrialState.BROKEN for trial in trials)
        self._best = best_trial(trials, maximize=self.experiment.maximize)
        for trial in self.study.running():
            folder = self.layout.folder(trial.id)
            job = self.driver.adopt(folder)
            if job is not None:
                self._activate(trial, folder, job)
            elif not self._store_result(trial, folder):
                self._waiting.append(trial)

    def _fill(self) -> None:
        """Start what waits for another job, then new trials, as far as the limits allow."""
        while (
            len(self._active) < self.limits.concurrent
            and self._complete + len(self._active) < self.limits.finished
            and not (self.stop.asking or self._is_failing())
        ):
            self._submit(self._waiting.popleft() if self._waiting else self.study.ask())

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
            "language": self.experiment.language,
            "params": to_entries(self.experiment.variables, trial.params),
        }
        write_json(folder.spec, spec)
        request = JobRequest(
            name=f"{self.experiment.name}-{trial.id:08d}",
            folder=folder,
            directory=self.layout.root,
            output=self.layout.output(trial.id),
        )
        self._activate(trial, folder, self.driver.submit(request))

    def _activate(self, trial: Trial, folder: TrialFolder, job: Job) -> None:
        runner = read_json(folder.runner)
        started = float(runner["start"]) if runner is not None else time.time()
        self._active[trial.id] = _Active(trial, folder, job, started)
        self._record()
        self.watcher.submitted(trial, self.progress())

    def _collect(self) -> None:
        """Store what has ended; start lost jobs again; end what overstays."""
        states = self.driver.poll([active.job for active in self._active.values()])
        for active in list(self._active.values()):
            if states[active.job] is JobState.GONE:
                self._settle(active)
            else:
                self._end_overdue(active)

    def _settle(self, active: _Active) -> None:
        """Store the trial of a job that is over, or start it again."""
        del self._active[active.trial.id]
        self.driver.cancel([active.job])  # ends what the runner left behind
        if self._store_result(active.trial, active.folder, values_only=active.timed_out):
            return
        if active.timed_out:
            limit = self.experiment.trial_timeout_s
            self._break(active, f"ran past the time limit of {limit:g} s")
            return
        how = self.driver.explain(active.job)
        trial = self.study.add_loss(active.trial)
        if trial.lost > self.experiment.max_retries:
            times = f", {trial.lost} times" if trial.lost > 1 else ""
            self._break(replace(active, trial=trial), how + times)
            return
        self.watcher.note(f"trial {trial.id} was lost ({how}) and runs again")
        self._waiting.append(trial)

    def _end_overdue(self, active: _Active) -> None:
        now, limit = time.time(), self.experiment.trial_timeout_s
        if active.folder.result.exists():
            active.result_since = active.result_since or now
            if now - active.result_since > _EXIT_GRACE_S:
                self.driver.cancel([active.job])
        elif limit is not None and now - active.started > limit:
            active.timed_out = True
            self.driver.cancel([active.job])

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
            self._ended(self.study.break_(trial, result, self._tail(trial)))
        else:
            self._ended(self.study.complete(trial, result))
        return True

    def _break(self, active: _Active, reason: str) -> None:
        seconds = time.time() - active.started
        result = Result(value=None, reason=reason, seconds=seconds)
        self._ended(self.study.break_(active.trial, result, self._tail(active.trial)))

    def _ended(self, trial: Trial) -> None:
        if trial.state is TrialState.COMPLETE:
            self._complete += 1
            self._broken_in_a_row = 0
            rivals = [trial] if self._best is None else [self._best, trial]
            self._best = best_trial(rivals, maximize=self.experiment.maximize)
        else:
            self._broken += 1
            self._broken_in_a_row += 1
            self._last_broken = trial
        self._record()
        self.watcher.ended(trial, self.progress())

    def _record(self) -> None:
        self.records.update(
            self._best, pending=len(self._active), complete=self._complete, broken=self._broken
        )

    def _is_failing(self) -> bool:
        factor = 1 if self._complete == 0 else _LATER_FACTOR
        return self._broken_in_a_row >= self.limits.broken * factor

    def _check_broken(self) -> None:
        if not self._is_failing() or self._last_broken is None:
            return
        trial = self._last_broken
        output = self.layout.output(trial.id)
        which = "first" if self._complete == 0 else "last"
        raise SearchFailed(
            f"the {which} {self._broken_in_a_row} trials all broke; "
            f"the last one, trial {trial.id}: {trial.reason}\n{_indent(trial.tail)}".rstrip(),
            f"Its whole output: {output}\nMend it, then run the same command again.",
        )

    def _wait(self) -> None:
        """Sleep until a job may have ended, a stop, or the polling time is over."""
        deadline = time.monotonic() + self.limits.polling_s
        asking = self.stop.asking
        while not self.stop.now and self.stop.asking == asking:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            before = time.monotonic()
            step = min(left, _SLICE_S)
            self.driver.wait([active.job for active in self._active.values()], step)
            if time.monotonic() - before < step * 0.9:
                return

    def _tell_stop(self) -> None:
        """Say once that the search is stopping, and what still runs."""
        if not self.stop.asking or self._told_stop:
            return
        self._told_stop = True
        ids = ", ".join(str(trial_id) for trial_id in self._active)
        self.watcher.note(
            f"Stopping: no new trials. Still running: {ids}. "
            "Ctrl-C again ends them; the same command goes on later."
        )

    def _end_active(self) -> None:
        """End the running trials; they stay in the study as running and start again later."""
        self.driver.cancel([active.job for active in self._active.values()])
        for active in list(self._active.values()):
            del self._active[active.trial.id]
            if not self._store_result(active.trial, active.folder, values_only=True):
                active.folder.result.unlink(missing_ok=True)

    def _tail(self, trial: Trial) -> str:
        """Return the last lines of the trial's output."""
        path = self.layout.output(trial.id)
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
            return "\n".join(lines[-_TAIL_LINES:])
        return ""


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
