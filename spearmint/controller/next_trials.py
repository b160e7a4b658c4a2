"""The trials of the next job: those that wait for a retry, paused ones, then new ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.controller.ending import EndingJobs
from spearmint.controller.events import SearchObserver
from spearmint.controller.paused_trials import PausedTrials
from spearmint.controller.proposals import Proposals
from spearmint.controller.running_trial import RunningTrial, jobs_of
from spearmint.controller.tally import Tally
from spearmint.drivers import Driver
from spearmint.layout import Layout
from spearmint.model import Trial
from spearmint.store.study import Study


@dataclass(slots=True)
class NextTrials:
    """Chooses the trials of each job of a study.

    Attributes:
        waiting: Trials to rerun, the first one first.
        proposals: Points of new trials.
    """

    study: Study
    layout: Layout
    driver: Driver
    observer: SearchObserver
    tally: Tally
    paused: PausedTrials
    ending: EndingJobs
    waiting: deque[Trial] = field(default_factory=deque)
    proposals: Proposals = field(init=False)

    def __post_init__(self) -> None:
        self.proposals = Proposals(self.study)

    def are_wanted(self, n_running: int) -> bool:
        """Return whether one more trial should start, or a paused one resume, if there is room."""
        return self.tally.wants_trial(n_running) or self.resume_paused()

    def resume_paused(self) -> bool:
        """Return whether a paused trial can continue, also if there are enough new trials."""
        can = self.paused.next(self.ending.trials) is not None
        return can and not (self.tally.is_failing() or self.tally.stop_reason())

    def of_a_job(self, n_free: int, running: Mapping[int, RunningTrial]) -> list[Trial]:
        """Return the trials of a job; none if a paused trial cannot be resumed yet.

        A job of several trials can be smaller than ``batch``. The last retry of a trial is a job
        without others: any of them may be what ended their job.

        Args:
            n_free: Number of free places, at least 1.
            running: The running trials by number.

        Raises:
            ProposalStopped: A signal requested a stop. Trials that were chosen already wait.
        """
        most, chosen = self.study.experiment.batch, list[Trial]()
        try:
            while len(chosen) < most:
                if chosen and not self._goes_with(len(running) + len(chosen)):
                    break
                trial = self._next(n_free * most - len(chosen), running)
                if trial is None:
                    break
                chosen.append(trial)
                if self._runs_alone(trial):
                    break
        except BaseException:
            self.waiting.extendleft(reversed(chosen))
            raise
        return chosen

    def _goes_with(self, n_running: int) -> bool:
        """Return whether one more trial can run in the job of others."""
        if self.waiting:
            return not self._runs_alone(self.waiting[0])
        return self.are_wanted(n_running)

    def _runs_alone(self, trial: Trial) -> bool:
        is_last = trial.lost >= max(1, self.study.experiment.max_retries)
        return is_last or trial.alone

    def _next(self, n_free: int, running: Mapping[int, RunningTrial]) -> Trial | None:
        """Return a trial that waits for a retry, else a paused one, else a new one.

        None if a paused trial cannot be resumed yet.
        """
        if self.waiting:
            return self.waiting.popleft()
        paused = self.paused.next(self.ending.trials)
        if paused is None:
            asked = self.proposals.ask(n_free)
            self._note_notices()
            return asked
        if self.paused.is_from_earlier(paused) and (
            job := self.driver.adopt(self.layout.job(paused))
        ):
            watch = self.ending.note if job in jobs_of(running.values()) else self.ending.add
            watch(job, paused)  # its last job is about to end, or trains others
            return None
        trial = self.paused.resume(paused)
        if trial is not None:
            self.tally.resume_paused()
        return trial

    def _note_notices(self) -> None:
        """Report what the chooser has to say, after the name of the region if there are several."""
        region = self.study.experiment.region
        for text in self.study.notices():
            self.observer.note(f"{region}: {text}" if region else text)

    def prepare(self, most: int, n_running: int) -> bool:
        """Propose a trial ahead of need, unless ``most`` are ready; return whether one was.

        Raises:
            ProposalStopped: A signal requested a stop.
        """
        return self.tally.wants_trial(n_running) and self.proposals.prepare(most)

    def remove(self, trial_id: int) -> list[Trial]:
        """Return the trial as list if it waits or is paused; it does not run any more."""
        found = [trial for trial in self.waiting if trial.id == trial_id]
        for trial in found:
            self.waiting.remove(trial)
        if (paused := self.paused.remove(trial_id)) is not None:
            self.tally.resume_paused()
            found.append(paused)
        return found
