"""What a driver is: the contract between the loop and whatever runs trials."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

from spearmint.layout import TrialFolder


@dataclass(frozen=True, slots=True)
class Job:
    """One submission of a trial: the driver's own id, unique while it lives."""

    driver: str
    id: str


class JobState(Enum):
    """What a driver knows of a job."""

    ALIVE = "alive"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What the loop asks a driver to run.

    Attributes:
        name: For people and queues, ``branin-00000007``.
        folder: Trial folder; its ``trial.json`` is written.
        directory: The experiment's directory.
        output: File that standard output and error are appended to.
    """

    name: str
    folder: TrialFolder
    directory: Path
    output: Path


class Driver(ABC):
    """Runs ``python -m spearmint.runner FOLDER`` somewhere.

    Rules, checked for every driver by the contract suite in tests/spearmint/drivers:

    - ``submit`` returns at once; the runner starts soon after, and at most once.
    - ``poll`` says GONE only of a job that is certainly over; a poll that fails raises
      DriverError and changes nothing. When a job is GONE, its result file is final.
    - ``adopt`` finds the job that an earlier controller, killed at any instant, submitted for
      a folder, or returns None when none of it can ever write there again.
    - ``cancel`` returns when the jobs and every process they started are over; of a job that is
      GONE it ends what was left behind.
    - Killing the controller leaves jobs running.
    """

    name: ClassVar[str]

    @abstractmethod
    def submit(self, request: JobRequest) -> Job:
        """Start a job for ``request``. Raises DriverError when it cannot."""

    @abstractmethod
    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the living job of ``folder``, or None after clearing what is left of it."""

    @abstractmethod
    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return the state of each of ``jobs``."""

    @abstractmethod
    def cancel(self, jobs: Collection[Job]) -> None:
        """End ``jobs``, and all they started."""

    @abstractmethod
    def explain(self, job: Job) -> str:
        """Return how a job that is GONE ended, in one line."""

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return when one of ``jobs`` may have ended, after ``timeout_s`` seconds at most."""
        time.sleep(timeout_s)
