"""The main loop of a search: collect results, start trials, wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from spearmint.budget import Budget
from spearmint.controller.capacity import Capacity
from spearmint.controller.desk import RequestDesk
from spearmint.controller.events import SearchObserver, StudyCounts
from spearmint.controller.finals import Finals
from spearmint.controller.limits import SearchLimits
from spearmint.controller.signals import ProposalStopped, StopRequest
from spearmint.controller.study_run import StudyRun
from spearmint.controller.warm_start import warm_points
from spearmint.drivers import Driver, Job
from spearmint.errors import CannotStart, DriverUnreachable, QueueFull, SearchFailed
from spearmint.formatting import format_duration
from spearmint.requests.inbox import Inbox
from spearmint.transfer import Neighbours

_REFUSED_S = 10.0  # until the next submission after the queue had no room for one
_COLLECT_S = 1.0  # minimum interval of polls while free places are filled
_MANY_PLACES = 50  # with fewer, a proposal ahead of need would miss too many results
_PLACES_PER_PROPOSAL = 10  # concurrent trials for each proposal ahead of need
_SLICE_S = 0.2  # interval of checks for Ctrl-C and for new reports
_MOST_LISTED = 20  # trials in a message
_SHORT_S = 0.01  # the same between two proposals ahead of need


@dataclass(slots=True)
class Controller:
    """Runs the studies of all regions to their end, with one driver.

    The next trial belongs to the study with the fewest running, then the fewest finished trials.
    """

    studies: Sequence[StudyRun]
    driver: Driver
    limits: SearchLimits
    observer: SearchObserver
    stop: StopRequest = field(default_factory=StopRequest)
    budget: Budget | None = None
    neighbours: Neighbours | None = None  # of regions that learn from each other
    _started_at: float = field(default_factory=time.monotonic)
    _capacity: Capacity = field(init=False)
    _desk: RequestDesk = field(init=False)
    finals: Finals = field(init=False)
    _noted: set[str] = field(default_factory=set)
    _noted_stop: bool = False
    _refused_at: float | None = None  # when the queue had no room for a submission
    _collected_at: float = 0.0
    _is_filling: bool = False  # places are free, and the poll of the driver is due
    _was_reached: bool = False
    _is_unreachable: bool = False
    _refused_by_budget: bool = False

    def __post_init__(self) -> None:
        self._capacity = Capacity(
            self.driver, self.limits.concurrent, follows=self.limits.follows_capacity
        )
        inbox = Inbox(self.studies[0].layout)
        for study in self.studies:
            study.obey(self.stop)
        self._desk = RequestDesk(self.studies, self.observer, inbox)
        self.finals = Finals(self.studies, starts=self.limits.then_final)

    def run(self) -> Mapping[str, StudyCounts]:
        """Search until a limit or a stop; return the last counts by region.

        A queue that stops answering is polled until it answers.

        Raises:
            SearchFailed: Too many trials failed in a row.
            DriverUnreachable: The queue did not answer the first call.
            StorageError, DriverError: Running trials continue, and the next run adopts them.
        """
        self._started_at = time.monotonic()
        for study in self.studies:
            study.resume()
        self.finals.resume()
        self.driver.forget_others(self._jobs())
        self._note_done()
        while not self._must_stop():
            steps = (self._collect, self._desk.handle, self._fill)
            if all(map(self._call_queue, steps)):
                self._note_answer()
            if self._ends_by_budget():
                break
            is_idle = not self._jobs()
            if is_idle and not self._is_unreachable and self._refused_at is None:
                break
            if self._must_stop():  # since the loop began
                break
            self._note_stop()
            if not self._is_filling or self._is_unreachable:
                self._wait()
        if self.stop.requested and self.driver.detaches:
            self._note_detached()
        elif self.stop.now:
            self.cancel()
        self.driver.forget_others(self._jobs())
        self._check_failures()
        return {study.experiment.region: study.counts() for study in self.studies}

    def _note_done(self) -> None:
        """Report that earlier runs finished all trials."""
        done = [study.tally.finished >= study.limits.finished for study in self.studies]
        if all(done) and not any(s.is_busy or s.resumes_paused() for s in self.studies):
            n = sum(study.tally.finished for study in self.studies)
            self.observer.note(
                f"All {n} trials are already finished. To run more, raise --max-finished-jobs."
            )

    def _must_stop(self) -> bool:
        return self.stop.now or (self.stop.requested and self.driver.detaches)

    def _ends_by_budget(self) -> bool:
        """Terminate all jobs if the budget has no room for them; return whether it did."""
        spent = self.budget.is_spent() if self.budget is not None else None
        if self.budget is None or spent is None:
            return False
        if not self._jobs():
            return False
        if not self._call_queue(self.cancel):
            return False
        self.observer.note(
            f"The budget of ${self.budget.limit:.2f} is spent: ${spent.spent:.2f}. The running "
            "trials were terminated; a rerun with a larger --budget restarts them."
        )
        return True

    def _has_budget(self, study: StudyRun) -> bool:
        """Return whether there are dollars for one more trial; report once if there are not."""
        if self.budget is None:
            return True
        running = [trial for other in self.studies for trial in other.running_trials()]
        why = self.budget.refusal(study.durations, running, and_final=self.limits.then_final)
        if why and not self._refused_by_budget:
            self.observer.note(f"No new trials: {why}.")
        self._refused_by_budget = bool(why)
        return not why

    def cancel(self) -> None:
        """Terminate all jobs. The next run restarts their trials."""
        for study in self.studies:
            study.end_running()
        self.finals.end()
        self.driver.forget_others(self._jobs())

    def _call_queue(self, call: Callable[[], None]) -> bool:
        """Call the queue and return whether it answered; report when it stops answering."""
        try:
            call()
        except DriverUnreachable as error:
            if not self._was_reached:
                raise
            if not self._is_unreachable:
                self.observer.note(f"{error.what}\nRetrying. Trials continue to run.")
            self._is_unreachable = True
            return False
        self._was_reached = True
        return True

    def _note_answer(self) -> None:
        """Report that the queue answers again; some queues list jobs while they accept none."""
        if self._is_unreachable:
            self.observer.note("The queue answers again.")
            self._capacity.expect_return()
        self._is_unreachable = False

    def _jobs(self) -> list[Job]:
        return [*(job for study in self.studies for job in study.jobs), *self.finals.jobs]

    def _n_jobs(self) -> int:
        return sum(study.n_jobs for study in self.studies) + len(self.finals.jobs)

    def _collect(self) -> None:
        """Poll the driver once for all studies."""
        states = self.driver.poll(self._jobs())
        self._check_blocked()
        for text in self.driver.notices():
            self.observer.note(text)
        for study in self.studies:
            study.collect(states)
        self.finals.collect(states)
        self._collected_at = time.monotonic()

    def _check_blocked(self) -> None:
        """Delete all jobs and raise CannotStart if the queue can never run any of them."""
        if not self.limits.waits and (reason := self.driver.blocked()):
            self.cancel()
            raise CannotStart(
                f"{reason}\nNo trial has started, and the jobs are deleted.",
                "After the fix, rerun the command. To wait for it instead: add --wait",
            )

    def _fill(self) -> None:
        """Start as many trials as the limits allow, until the next poll of the driver is due."""
        self._is_filling = False
        if text := self._capacity.update():
            self.observer.note(text)
        most = self._capacity.concurrent + self.limits.queue_ahead
        if self._refused_at is not None and time.monotonic() - self._refused_at < _REFUSED_S:
            return
        if not self.stop.requested:
            limited = self._refused_by_budget or bool(self._stop_reason())
            self.finals.start(most - self._n_jobs(), limited=limited)
        while self._n_jobs() < most and not self.stop.requested:
            if reason := self._stop_reason():
                self._note_once(f"No new trials: {reason}.")
            ready = [study for study in self._admitted() if not reason and self._wants_trial(study)]
            if not ready:
                self._refused_at = None
                return
            chosen = min(ready, key=lambda study: (study.n_running, study.tally.finished))
            if not self._has_budget(chosen):
                return
            if self.limits.warm_start and not chosen.has_begun:
                self._warm(chosen)
            self._tell_neighbours(chosen)
            try:
                chosen.start_job(most - self._n_jobs())
            except ProposalStopped:
                return
            except QueueFull as error:
                self._note_once(f"{error}\nRetrying until the queue accepts more jobs.")
                self._refused_at = time.monotonic()
                return
            self._refused_at = None
            if time.monotonic() - self._collected_at > max(_COLLECT_S, self.limits.polling_s):
                self._is_filling = True
                return

    def _admitted(self) -> Sequence[StudyRun]:
        """Return the studies that can start trials; with a warm start, later studies wait."""
        if not self.limits.warm_start:
            return self.studies
        room = self._capacity.concurrent - sum(study.is_open for study in self.studies)
        closed = [study for study in self.studies if not study.has_begun]
        waiting = set(map(id, closed[max(0, room) :]))
        return [study for study in self.studies if id(study) not in waiting]

    def _warm(self, study: StudyRun) -> None:
        """Queue the best points of finished studies."""
        finished = [other for other in self.studies if other.has_begun and not other.is_open]
        trials = [other.study.trials() for other in finished]
        points = warm_points(study.experiment, trials, self.limits.warm_start)
        for point in points:
            study.study.enqueue(point)
        if points:
            self.observer.note(
                f"{study.experiment.region}: warm start with {len(points)} points that were best "
                f"in {len(finished)} finished regions."
            )

    def _tell_neighbours(self, study: StudyRun) -> None:
        """Let a region learn from the others as they are now, if it is to."""
        if self.neighbours is None:
            return
        by_region = {other.experiment.region: other for other in self.studies}
        complete = {region: other.tally.complete for region, other in by_region.items()}
        found = self.neighbours.of(
            study.experiment.region, complete, lambda region: by_region[region].study.as_earlier()
        )
        study.study.learn_from_regions(found)

    def _wants_trial(self, study: StudyRun) -> bool:
        if reason := study.tally.stop_reason():
            region = study.experiment.region
            self._note_once(f"{region}: {reason}." if region else f"No new trials: {reason}.")
        return study.wants_trial()

    def _stop_reason(self) -> str:
        """Return which limit of the whole search is reached; empty for none."""
        limit = self.limits.time_s
        if limit is not None and time.monotonic() - self._started_at >= limit:
            return f"the time limit of {format_duration(limit)} (--max-time) is reached"
        limit = self.limits.trial_time_s
        if limit is not None and sum(study.seconds() for study in self.studies) >= limit:
            return f"the limit of {format_duration(limit)} of trial time is reached"
        return ""

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.observer.note(text)

    def _check_failures(self) -> None:
        failures = [failure for study in self.studies if (failure := study.failure())]
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise SearchFailed(
                f"{len(failures)} of {len(self.studies)} regions failed\n"
                + "\n".join(failure.what for failure in failures),
                failures[-1].fix,
            )

    def _wait(self) -> None:
        """Sleep until a job has possibly ended, the user stops, or the polling time has passed."""
        polling_s = self.limits.polling_s if self._n_jobs() else _SLICE_S
        deadline = time.monotonic() + polling_s
        requested = self.stop.requested
        jobs = self._jobs()
        while not self.stop.now and self.stop.requested == requested:
            if self._prune() or self._desk.has_news() or self._has_results():
                return
            slice_s = _SHORT_S if self._prepare() else _SLICE_S
            left = deadline - time.monotonic()
            if left <= 0:
                return
            before = time.monotonic()
            step = min(left, slice_s)
            self.driver.wait(jobs, step)
            if time.monotonic() - before < step * 0.9:
                return

    def _has_results(self) -> bool:
        """Return whether a trial has a result while its job trains others."""
        return not self._is_unreachable and any(study.has_results() for study in self.studies)

    def _prepare(self) -> bool:
        """Compute a proposal ahead of need for many concurrent trials; return whether it did."""
        concurrent = self._capacity.concurrent
        most = concurrent // _PLACES_PER_PROPOSAL // len(self.studies)
        is_large = concurrent >= _MANY_PLACES and most > 0
        if not is_large or self.stop.requested or self._refused_at is not None:
            return False
        with suppress(ProposalStopped):
            return any(study.prepare(most) for study in self.studies if study.has_begun)
        return False

    def _prune(self) -> bool:
        """Stop poor trials of all studies; return whether any was stopped."""
        pruned = False
        if self._is_unreachable:
            return pruned

        def prune() -> None:
            nonlocal pruned
            pruned = any(study.prune() for study in self.studies)

        self._call_queue(prune)
        return pruned

    def _note_detached(self) -> None:
        """Report which trials continue in the queue without this process."""
        running = [text for study in self.studies for text in study.labels]
        if running:
            self.observer.note(
                f"Stopped. {len(running)} trials continue in the queue: {_listed(running)}. "
                "Rerun the command to follow them, or add --cancel to terminate them."
            )

    def _note_stop(self) -> None:
        """Report once that the search is stopping, and which trials still run."""
        if self.stop.requested and not self._noted_stop:
            self._noted_stop = True
            running = [text for study in self.studies for text in study.labels]
            self.observer.note(
                f"Stopping: no new trials. Still running: {_listed(running)}. "
                "Press Ctrl-C again to terminate them. Rerun the command to continue later."
            )


def _listed(names: Sequence[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
