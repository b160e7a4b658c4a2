"""What a queue is to :class:`~spearmint.drivers.queue_driver.QueueDriver`: calls, nouns, words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from spearmint.drivers.base import DriverSettings
from spearmint.resources import Resources


class QueueJobState(Enum):
    """State of a job that is listed; every one of them may still run.

    Attributes:
        PENDING: Waits for its turn.
        HELD: Waits until somebody releases it.
        RUNNING: Runs.
        SUSPENDED: Stopped in place; keeps its memory.
        PREEMPTED: Lost its host to another job; the queue runs it again.
        ERROR: Does not start until somebody acts.
        ENDING: Is being cancelled, or cleans up.
    """

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    SUSPENDED = "suspended"
    PREEMPTED = "preempted"
    ERROR = "error"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitSpec:
    """A job to submit.

    Attributes:
        token: 12 hexadecimal digits that identify the trial's folder. The queue keeps them with
            the job, at the end of its name for example, and lists them again.
        label: For people, ``branin-7``; any characters.
        argv: Program and arguments, never read by a shell.
        directory: Where it starts.
        output: File that standard output and error are appended to.
        environment: Variables of the job.
        resources: What it needs. The queue loads ``modules``, activates ``venv`` and runs
            ``setup``; ``environment`` is already merged into that of the job.
    """

    token: str
    label: str
    argv: tuple[str, ...]
    directory: Path
    output: Path
    environment: Mapping[str, str]
    resources: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJob:
    """A job that is not over.

    Attributes:
        id: The queue's id, any text.
        token: That of its :class:`SubmitSpec`; any text for jobs of others.
        text: The queue's own word for the state, such as ``hqw`` or ``PD``.
    """

    id: str
    token: str
    state: QueueJobState
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHost:
    """A host that takes jobs.

    Attributes:
        slots: Slots that the jobs in question can have there.
        gpus: GPUs that jobs can have there.
    """

    name: str
    slots: int
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """How one run of a job ended, from the queue's accounting.

    Attributes:
        host: Where it ran; may be empty.
        ended: Seconds since the epoch, 0 when unknown.
        seconds: How long it ran.
        exit_status: What it exited with.
        signal: Number of the signal that ended it; 0 for none.
        timed_out: Whether it reached the walltime.
        limit: Another limit of the queue that it reached, such as ``memory``; empty for none.
        failure: Why the queue ended it, in the queue's own words; empty when it did not.
    """

    host: str = ""
    ended: float = 0.0
    seconds: float = 0.0
    exit_status: int = 0
    signal: int = 0
    timed_out: bool = False
    limit: str = ""
    failure: str = ""


class Queue(Protocol):
    """The calls of a queue. Subclass it: methods with a body here are optional.

    Every method raises DriverUnreachable when the queue does not answer, which says nothing of
    any job, and DriverError, with the queue's own words, when it refuses.
    """

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str | None:
        """Queue a job and return its id; None when the queue assigns ids later.

        Args:
            inherit: File descriptors that the command that submits keeps open until it is done:
                the next controller waits for it if this one is killed.
        """
        ...

    def jobs(self) -> Sequence[QueueJob]:
        """Return this user's jobs that are not over, in any state."""
        ...

    def cancel(self, ids: Collection[str]) -> None:
        """Ask the queue to end jobs; one that is over is no error."""
        ...

    def hosts(self, need: Resources) -> Sequence[QueueHost] | None:
        """Return the hosts that take jobs with this ``need`` now; None when unknown."""
        return None

    def accounting(self, id: str) -> Sequence[EndedRun] | None:
        """Return how the runs of a job ended, empty until known; None without accounting."""
        return None

    def reason(self, id: str) -> str:
        """Return why a job is in the ERROR state, in the queue's own words."""
        return ""

    def preview(self, spec: SubmitSpec) -> str:
        """Return what ``submit`` would run, for people.

        Raises:
            InputError: The queue could not run this.
        """
        return f"{shlex.join(spec.argv)} >> {shlex.quote(str(spec.output))} 2>&1"


class QueueFactory(Protocol):
    """A subclass of Queue whose constructor takes the driver's settings, or a function."""

    def __call__(self, settings: DriverSettings) -> Queue:
        """Return the queue for these settings."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What differs between queues and needs no code.

    Attributes:
        queue: The queue's name in messages.
        job_id_variable: Environment variable that holds the job's id in a job. Without it every
            trial gets a job of its own, even if trials are queued ahead.
        rerun_exit_code: Exit code by which a job asks to be run again; 0 for none.
        listed_after_s: Seconds until a submitted job is listed, at most.
        limits_time: Names of ``Resources.requests`` that limit how long a job runs.
        accounting: The command that shows how a job ended.
        release, resume, retry, cancel, forget: Commands, with ``{id}`` for the job's id, that
            release a held job, resume a suspended one, retry one in error, cancel one, and
            remove one whose host is lost. Empty for none.
    """

    queue: str
    job_id_variable: str = ""
    rerun_exit_code: int = 0
    listed_after_s: float = 0.0
    limits_time: tuple[str, ...] = ()
    accounting: str = ""
    release: str = ""
    resume: str = ""
    retry: str = ""
    cancel: str = ""
    forget: str = ""


def room_for(hosts: Sequence[QueueHost], need: Resources) -> int:
    """Return how many trials fit on ``hosts`` at once."""
    by_gpus = (host.gpus // need.gpus if need.gpus else sys.maxsize for host in hosts)
    return sum(min(host.slots // need.slots, n) for host, n in zip(hosts, by_gpus, strict=True))
