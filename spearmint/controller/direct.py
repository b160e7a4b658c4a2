"""Apply requests of users while no controller runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spearmint.controller.events import StudyCounts
from spearmint.controller.outcomes import Outcomes
from spearmint.controller.running_trial import RunningTrial, ask_to_stop, share_in
from spearmint.drivers import Driver, DriverSettings, make_driver
from spearmint.model import Trial, TrialState
from spearmint.requests.applying import apply
from spearmint.requests.inbox import Action, Inbox
from spearmint.store.session import Session


@dataclass(slots=True)
class Collected:
    """An observer that keeps the messages."""

    notes: list[str] = field(default_factory=list)

    def submitted(self, trial: Trial, counts: StudyCounts) -> None:
        """Ignore it."""

    def started(self, trial: Trial, counts: StudyCounts) -> None:
        """Ignore it."""

    def ended(self, trial: Trial, counts: StudyCounts) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


def apply_requests(sessions: Sequence[Session], driver: str) -> list[str]:
    """Apply all requests of the search of ``sessions``; return messages.

    The caller holds the lock of the search.

    Args:
        sessions: All regions of the search.
        driver: Name of the driver of earlier runs.

    Raises:
        DriverError, StorageError: A job cannot be ended or the database not be written; the
            request stays.
    """
    inbox = Inbox(sessions[0].layout)
    messages: list[str] = []
    for name in inbox.names():
        request = inbox.read(name)
        if request is None:
            messages.append(f"ignored an invalid request: {inbox.reject(name)}")
            continue
        for session in sessions:
            if session.experiment.region != request.region:
                continue
            if request.action is not Action.STOP:
                messages.append(apply(session.study, inbox, request))
                continue
            for trial_id in request.trials:
                messages += stop_now(session, driver, trial_id, request.reason)
            inbox.remove(request.id)
    return [text for text in messages if text]


def stop_now(session: Session, driver: str, trial_id: int, reason: str) -> list[str]:
    """Terminate the job of a trial that no controller follows, and store the trial as broken.

    A trial that wrote its value keeps it. Nothing happens if the trial has ended.
    """
    trial = session.study.find(trial_id)
    if trial is None or trial.state not in (TrialState.RUNNING, TrialState.PAUSED):
        return []
    used = make_driver(driver, DriverSettings(directory=session.layout.root))
    seconds = _end_job(used, session, trial)
    outcomes = _outcomes(session, used)
    if not outcomes.store_result(trial, session.layout.folder(trial_id), values_only=True):
        outcomes.store_stopped(trial, reason, seconds)
    return used.notices()


def _outcomes(session: Session, driver: Driver) -> Outcomes:
    return Outcomes(session.study, session.layout, driver, Collected(), on_end=lambda trial: None)


def _end_job(driver: Driver, session: Session, trial: Trial) -> float:
    """Terminate the job of a trial if it has one; return its run time in seconds.

    Other trials of the job continue.
    """
    folder, job_folder = session.layout.folder(trial.id), session.layout.job(trial.id)
    job = driver.adopt(job_folder)
    if job is None:
        return 0.0
    waiting = not folder.runner.exists()
    running = RunningTrial(trial, folder, job, job_folder, share_in(job_folder), waiting)
    seconds = running.charged_s()
    if running.is_in_batch:
        ask_to_stop(folder)
    else:
        driver.cancel([job])
    return seconds
