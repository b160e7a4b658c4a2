"""Nouns of a queue: what to run, what is queued, what has ended, where it can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from sge_jobs.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What to run, as one job or one array of tasks.

    Attributes:
        name: For people; anything, made a name that Grid Engine takes.
        argv: Program and arguments, never read by a shell.
        directory: Where it starts.
        log: File that standard output and error are appended to; None for Grid Engine's own files.
        environment: Variables of the job.
        modules: Environment modules to load first.
        venv: Python environment to activate first.
        setup: Lines of shell to run first, written by the user.
        tasks: Tasks of an array such as ``1-41``; empty for one job.
        concurrent_tasks: Tasks that run at once; None for all.
        rerunnable: Run again after a lost host.
    """

    name: str
    argv: tuple[str, ...]
    directory: Path
    log: Path | None = None
    resources: Resources = field(default_factory=Resources)
    environment: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    venv: Path | None = None
    setup: tuple[str, ...] = ()
    tasks: str = ""
    concurrent_tasks: int | None = None
    rerunnable: bool = True


class JobStatus(Enum):
    """What a queued job does; each of them is alive."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ERROR = "error"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One row of qstat: a job, or one task of an array that runs.

    Attributes:
        id: Number of the job.
        task: Number of the task, a range such as ``3-41:1`` while several wait, or empty.
        state: Grid Engine's letters, such as ``hqw``.
        host: Host it runs on; empty while it waits.
        since: Seconds since the epoch, of its start, or of its submission while it waits.
        gpus: GPUs it asked for.
    """

    id: str
    task: str = ""
    name: str
    owner: str
    state: str
    status: JobStatus
    queue: str = ""
    host: str = ""
    slots: int = 1
    since: float = 0.0
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingRecord:
    """How one job, or one run of it, ended, from qacct.

    Attributes:
        failed: Grid Engine's code; 0 when it is content, 37 for a limit, 100 for a signal.
        failed_text: Its words for the code.
        exit_status: Of the job; 128 + N when signal N ended it.
        submitted, started, ended: Seconds since the epoch; None where it never came to that.
        wallclock_s: Seconds it ran.
        memory_bytes: The most it had, ``maxvmem``.
    """

    id: str
    task: str = ""
    name: str
    owner: str
    host: str
    failed: int
    failed_text: str = ""
    exit_status: int
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    wallclock_s: float = 0.0
    memory_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInstance:
    """A queue on one host.

    Attributes:
        state: Grid Engine's letters: ``a`` alarm, ``d`` disabled, ``E`` error, ``u`` no answer.
    """

    name: str
    slots: int = 0
    slots_used: int = 0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One execution host, from qhost.

    Attributes:
        reachable: Whether it reports load.
        gpus: GPUs that its jobs can have; None where the cell knows none of it. Those that a
            process outside a job keeps are not among them.
        gpus_used: Of these, asked for by jobs that run.
        gpu_state: What its sensor last said, see :mod:`sge_jobs.gpu_state`; empty without one.
    """

    name: str
    reachable: bool
    cores: int = 0
    slots: int = 0
    slots_used: int = 0
    load: float | None = None
    gpus: int | None = None
    gpus_used: int = 0
    gpu_state: str = ""
    queues: tuple[QueueInstance, ...] = ()
