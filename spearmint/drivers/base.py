"""The contract of a driver: how the controller starts, follows and stops jobs."""

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
    """One submission of a trial. Its id is unique for the driver until the job has ended."""

    driver: str
    id: str


class JobState(Enum):
    """The state of a job.

    Attributes:
        WAITING: The job is queued, held or suspended. This time does not count as run time.
        ALIVE: The job runs.
        FINISHED: The trial's result is written; the job is about to exit.
        GONE: The job has ended, and its result file is final.
    """

    WAITING = "waiting"
    ALIVE = "alive"
    FINISHED = "finished"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended that did not write a result.

    Attributes:
        text: One line for users.
        again: Whether to retry the trial; False if a retry would fail in the same way.
        counts: Whether a retry counts for ``max_retries``; False if only the host is at fault.
    """

    text: str
    again: bool = True
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """The arguments of every driver.

    Attributes:
        directory: The experiment's directory.
        max_concurrent: Number of trials that run at the same time and share the machine.
        queues_ahead: Whether more trials are submitted than run at the same time.
        polling_s: Minimum number of seconds between two listings of a queue.
        resources: The resources of each trial.
        module: Name of the Python file in ``directory`` that trials will run; empty for no file,
            or if nothing will run. A driver can import its modules early.
    """

    directory: Path
    max_concurrent: int = 1
    queues_ahead: bool = False
    polling_s: float = 3.0
    resources: Resources = field(default_factory=Resources)
    module: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A trial that the controller asks a driver to run.

    Attributes:
        name: Name for users and queues, such as ``branin-7``.
        folder: Trial folder; it contains ``trial.json``.
        directory: The experiment's directory.
        output: File to which the driver appends standard output and error.
    """

    name: str
    folder: TrialFolder
    directory: Path
    output: Path


class Driver(ABC):
    """Runs ``python -m spearmint.trial.runner FOLDER`` for each trial.

    For a queue, subclass :class:`~spearmint.drivers.queue_driver.QueueDriver` instead.
    :class:`spearmint.drivers.testing.DriverContract` checks these rules for every driver:

    - ``submit`` returns immediately; the runner starts soon after, and at most once.
    - ``poll`` returns GONE only for a job that has certainly ended. A poll that fails raises
      DriverUnreachable and changes nothing. When a job is GONE, its result file is final.
    - ``adopt`` returns the job that an earlier controller submitted for a folder, even if that
      controller was killed at any point. It returns None only if no process of such a job can
      write to the folder any more.
    - ``cancel`` returns when the jobs and all their processes have ended. For a job that is GONE it
      terminates leftover processes.
    - Jobs continue to run if the controller is killed.

    Attributes:
        name: Value of ``--driver`` that selects this driver; ``make_driver`` sets it.
    """

    name: str = ""
    detaches: ClassVar[bool] = False
    """Whether jobs keep running after Ctrl-C, so that the next run adopts them."""

    def __init__(self, settings: DriverSettings) -> None:  # noqa: B027 - overriding is optional
        """Create the driver; submit nothing."""

    @abstractmethod
    def submit(self, request: JobRequest) -> Job:
        """Start a job for ``request``. Raises DriverError if that fails."""

    @abstractmethod
    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the unfinished job of ``folder``, or None after ending its leftover processes."""

    def has_job(self, folder: TrialFolder) -> bool:
        """Return whether a job of ``folder`` is queued or runs, without changing anything.

        A driver that cannot know returns False.
        """
        return False

    @abstractmethod
    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return the state of each job in ``jobs``."""

    @abstractmethod
    def cancel(self, jobs: Collection[Job]) -> None:
        """Terminate ``jobs`` and all processes that they started."""

    def end(self, jobs: Collection[Job]) -> None:
        """Ask ``jobs`` to terminate, without waiting; they can become GONE some polls later."""
        self.cancel(jobs)

    @abstractmethod
    def explain(self, job: Job) -> JobEnd:
        """Return how a job that is GONE without a result ended."""

    @abstractmethod
    def preview(self, request: JobRequest) -> str:
        """Return the command that ``submit`` would run, for users."""

    def capacity(self) -> int:
        """Return the default number of trials that run at the same time."""
        return 1

    def notices(self) -> list[str]:
        """Return new messages about jobs, for example that a job is held or in error."""
        return []

    def blocked(self) -> str:
        """Return why no job has started and none ever can, from the last poll; empty otherwise."""
        return ""

    def forget_others(self, jobs: Collection[Job]) -> None:
        """Delete the driver's files about trials that have no job in ``jobs``."""
        return

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return when one of ``jobs`` may have ended, or after ``timeout_s`` seconds."""
        time.sleep(timeout_s)
