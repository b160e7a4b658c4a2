"""What a driver is: the contract between the controller and whatever runs trials."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import ClassVar

from spearmint.layout import TrialFolder
from spearmint.resources import Resources


@dataclass(frozen=True, slots=True)
class Job:
    """One submission of a trial; the driver's own id is unique while the job is not over."""

    driver: str
    id: str


class JobState(Enum):
    """What a driver knows of a job.

    Attributes:
        WAITING: It is queued, held or suspended; its time does not count.
        ALIVE: It runs.
        FINISHED: Its result is written; the job itself is about to end.
        GONE: It is over, and its result file final.
    """

    WAITING = "waiting"
    ALIVE = "alive"
    FINISHED = "finished"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended that wrote no result.

    Attributes:
        text: For people, in one line.
        again: Whether to run its trial again: not when that would end the same way.
    """

    text: str
    again: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """What every driver is made with.

    Attributes:
        directory: The experiment's directory.
        max_concurrent: Trials that will run at once, to divide by what they share.
        queues_ahead: Whether more trials are submitted than run at once.
        polling_s: Seconds between two listings of a queue, at least.
        resources: What each trial needs.
    """

    directory: Path
    max_concurrent: int = 1
    queues_ahead: bool = False
    polling_s: float = 3.0
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What the controller asks a driver to run.

    Attributes:
        name: For people and queues, ``branin-7``.
        folder: Trial folder; its ``trial.json`` is written.
        directory: The experiment's directory.
        output: File that standard output and error are appended to.
    """

    name: str
    folder: TrialFolder
    directory: Path
    output: Path


class Driver(ABC):
    """Runs ``python -m spearmint.trial.runner FOLDER`` somewhere.

    For a queue, subclass :class:`~spearmint.drivers.queue_driver.QueueDriver` instead. Rules,
    checked for every driver by :class:`spearmint.drivers.testing.DriverContract`:

    - ``submit`` returns at once; the runner starts soon after, and at most once.
    - ``poll`` says GONE only of a job that is certainly over; a poll that fails raises
      DriverUnreachable and changes nothing. When a job is GONE, its result file is final.
    - ``adopt`` finds the job that an earlier controller, killed at any instant, submitted for
      a folder, or returns None when none of it can ever write there again.
    - ``cancel`` returns when the jobs and every process they started are over; of a job that is
      GONE it ends what was left behind.
    - Killing the controller leaves jobs running.

    Attributes:
        name: What ``--driver`` takes to make it; ``make_driver`` sets it.
    """

    name: str = ""
    detaches: ClassVar[bool] = False
    """Whether Ctrl-C leaves the jobs running, for the next run to find."""

    def __init__(self, settings: DriverSettings) -> None:  # noqa: B027 - may be enough
        """Make the driver; nothing is submitted."""

    @abstractmethod
    def submit(self, request: JobRequest) -> Job:
        """Start a job for ``request``. Raises DriverError when it cannot."""

    @abstractmethod
    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the job of ``folder`` that is not over; None after clearing what is left of it."""

    @abstractmethod
    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return the state of each of ``jobs``."""

    @abstractmethod
    def cancel(self, jobs: Collection[Job]) -> None:
        """End ``jobs`` and all processes that they started."""

    def end(self, jobs: Collection[Job]) -> None:
        """Ask ``jobs`` to end; they may be GONE only some polls later."""
        self.cancel(jobs)

    @abstractmethod
    def explain(self, job: Job) -> JobEnd:
        """Return how a job that is GONE ended without a result."""

    @abstractmethod
    def preview(self, request: JobRequest) -> str:
        """Return what ``submit`` would run, for people."""

    def capacity(self) -> int:
        """Return how many trials run at once unless the user says so."""
        return 1

    def notices(self) -> list[str]:
        """Return what users should know of jobs since the last call: held, in error."""
        return []

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return when one of ``jobs`` may have ended, after ``timeout_s`` seconds at most."""
        time.sleep(timeout_s)
