"""The interface of a queue to :class:`~spearmint.drivers.queue_driver.QueueDriver`."""

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
    """State of a listed job. A job in any state may still run.

    Attributes:
        PENDING: Waits for a free host.
        HELD: Waits until somebody releases it.
        RUNNING: Runs.
        SUSPENDED: Stopped; keeps its memory.
        PREEMPTED: Lost its host to another job; the queue reruns it.
        ERROR: Does not start until somebody fixes the error.
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
        token: 12 hexadecimal digits that identify the trial's folder. The queue stores them with
            the job, for example at the end of its name, and lists them later.
        label: Name for users, such as ``branin-7``; can contain any characters.
        argv: Program and arguments, not interpreted by a shell.
        directory: Working directory.
        output: File to which standard output and error are appended.
        environment: Environment variables of the job.
        avoid: Hosts on which the job must not start, if the queue supports that.
        folder: Folder of the trial; None for another job.
        resources: Resources of the job. The queue loads ``modules``, activates ``venv`` and runs
            ``setup``. The ``environment`` above already includes ``resources.environment``.
    """

    token: str
    label: str
    argv: tuple[str, ...]
    directory: Path
    output: Path
    environment: Mapping[str, str]
    resources: Resources
    avoid: tuple[str, ...] = ()
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJob:
    """A job that has not ended.

    Attributes:
        id: The queue's id, any text.
        token: Token of its :class:`SubmitSpec`; any text for other jobs.
        text: The queue's own code for the state, such as ``hqw`` or ``PD``.
        host: Host on which it runs; empty if unknown.
        is_rerun: Whether the queue has started it before.
    """

    id: str
    token: str
    state: QueueJobState
    text: str = ""
    host: str = ""
    is_rerun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    """A start of a job that failed before the job's own program.

    Attributes:
        reason: One line for users.
        times: Number of failed starts in a row on this host.
        at: Seconds since the epoch; 0 if unknown.
    """

    host: str
    reason: str
    times: int = 1
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHost:
    """A host that accepts jobs.

    Attributes:
        slots: Number of slots that jobs of this search can use.
        gpus: Number of GPUs that jobs can use.
        gpu_shares: Number of GPUs whose shares jobs can use.
    """

    name: str
    slots: int
    gpus: int = 0
    gpu_shares: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """How one run of a job ended, from the queue's accounting.

    Attributes:
        host: Host of the run; can be empty.
        ended: End of the run in seconds since the epoch; 0 if unknown.
        seconds: Duration of the run.
        exit_status: Exit status of the job.
        signal: Number of the signal that killed the job; 0 if none.
        timed_out: Whether the job reached the walltime.
        limit: Another limit of the queue that the job reached, such as ``memory``; empty if none.
        failure: The failure that the queue reported, in the queue's own words; empty if none.
    """

    host: str = ""
    ended: float = 0.0
    seconds: float = 0.0
    exit_status: int = 0
    signal: int = 0
    timed_out: bool = False
    limit: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a pending job cannot start, whatever other jobs do.

    Attributes:
        reason: The reason in the queue's own words.
        fix: What to do, with commands; empty if unknown.
        key: A text that changes if the reason changes; empty for the reason itself.
        passes: Whether it can end without a change by a user or manager.
    """

    reason: str
    fix: str = ""
    key: str = ""
    passes: bool = False


class Queue(Protocol):
    """The calls of a queue. Subclass this class; methods with a body here are optional.

    Every method raises DriverUnreachable if the queue does not answer, so that the states of jobs
    are unknown. It raises DriverError, with the queue's own message, if the queue refuses the call.
    """

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str | None:
        """Submit a job and return its id; None if the queue assigns ids later.

        Args:
            inherit: File descriptors that the submit command must keep open until it exits. If this
                controller is killed, the next controller waits for the command.
        """
        ...

    def jobs(self) -> Sequence[QueueJob]:
        """Return this user's jobs that have not ended, in any state."""
        ...

    def cancel(self, ids: Collection[str]) -> None:
        """Ask the queue to cancel jobs; a job that has already ended is not an error."""
        ...

    def shares_files(self) -> bool:
        """Return whether jobs see the experiment's directory, so that one can run more trials."""
        return True

    def fetch(self) -> None:
        """Store the results that jobs have sent, if they do not write them themselves."""
        return

    def hosts(self, need: Resources) -> Sequence[QueueHost] | None:
        """Return the hosts that now accept jobs with this ``need``; None if unknown."""
        return None

    def accounting(self, id: str) -> Sequence[EndedRun] | None:
        """Return how the runs of a job ended, empty until known; None if there is no accounting."""
        return None

    def reason(self, id: str) -> str:
        """Return why a job is in the ERROR state, in the queue's own words."""
        return ""

    def failed_start(self, id: str) -> FailedStart | None:
        """Return the last failed start of a listed job; None if none is known."""
        return None

    def obstacle(self, id: str) -> Obstacle | None:
        """Return why a pending job can never start; None if it only waits for other jobs."""
        return None

    def preview(self, spec: SubmitSpec) -> str:
        """Return the command that ``submit`` would run, for users.

        Raises:
            InputError: The queue cannot run this job.
        """
        return f"{shlex.join(spec.argv)} >> {shlex.quote(str(spec.output))} 2>&1"


class QueueFactory(Protocol):
    """A callable that creates a queue: a function, or a subclass of Queue."""

    def __call__(self, settings: DriverSettings) -> Queue:
        """Return the queue for the driver's settings."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The differences between queues that need no code.

    Attributes:
        queue: Name of the queue in messages.
        job_id_variable: Environment variable with the job id, inside a job. Without it every trial
            has a separate job, even if trials are queued ahead.
        rerun_exit_code: Exit code with which a job asks for a rerun; 0 if there is none.
        listed_after_s: Maximum number of seconds until a submitted job is listed.
        limits_time: Names of ``Resources.requests`` that limit how long a job runs.
        accounting: Command that shows how a job ended.
        release: Command that releases a held job, with ``{id}`` for the job id; empty if none.
        resume: The same for a suspended job.
        retry: The same for a job in the ERROR state.
        cancel: The command that cancels a job.
        forget: The command that removes a job whose host is unreachable.
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
    """Return how many trials ``hosts`` can run at the same time."""
    rooms = [min(host.slots // need.slots, _by_gpus(host, need.gpus)) for host in hosts]
    trials = sum(rooms) // need.nodes
    while trials and sum(min(room, trials) for room in rooms) < trials * need.nodes:
        trials -= 1  # each trial has different hosts
    return trials


def _by_gpus(host: QueueHost, wanted: float) -> int:
    """Return how many trials the GPUs of ``host`` can run; each share is of one GPU."""
    if not wanted:
        return sys.maxsize
    if wanted < 1:
        return int(host.gpu_shares) * (100 // round(wanted * 100))
    return int(host.gpus // wanted)
