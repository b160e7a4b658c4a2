"""Data classes: jobs to submit, queued jobs, ended jobs, hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from sge_jobs.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A job to submit, or an array of tasks.

    Attributes:
        name: Any text; :func:`job_name` turns it into a name that Grid Engine accepts.
        argv: Program and arguments; no shell interprets them.
        directory: Absolute path of the directory in which the program starts.
        log: File to which standard output and error are appended; None for Grid Engine's own files.
        environment: Environment variables of the job.
        modules: Environment modules to load before the program.
        venv: Python virtual environment to activate before the program.
        setup: Lines of bash to run before the program.
        tasks: Task numbers of an array, such as ``1-41``; empty for one job.
        concurrent_tasks: Largest number of concurrent tasks; None for all.
        rerunnable: Whether to rerun the job after its host is lost.
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
    """State of a job that is in the queue."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ERROR = "error"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One row of qstat: a job, or a running task of an array.

    Attributes:
        id: Number of the job.
        task: Number of the task, a range of waiting tasks such as ``3-41:1``, or empty.
        state: Grid Engine's letters, such as ``hqw``.
        host: Host on which it runs; empty while it waits.
        since: Time of its start, or of its submission while it waits, in seconds since the epoch.
        gpus: Number of requested GPUs, or the requested share of one.
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
    gpus: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a waiting job cannot start, whatever other jobs do.

    Attributes:
        reason: Grid Engine's reason, or the states of the queue instances that could run the job.
        fix: What to do, with commands.
        key: Changes if the reason changes, but not with names of hosts and measured values.
        passes: Whether it can end without a change by a user or manager, such as an alarm.
    """

    reason: str
    fix: str
    key: str
    passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingRecord:
    """The end of one run of a job, from qacct.

    Attributes:
        failed: Grid Engine's code: 0 for no failure, 37 for a limit, 100 for a signal.
        failed_text: Grid Engine's description of the code.
        exit_status: Exit code of the job; 128 + N if signal N terminated it.
        submitted, started, ended: Seconds since the epoch; None if it did not happen.
        wallclock_s: Run time in seconds.
        memory_bytes: Peak memory, ``maxvmem``.
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
        state: Grid Engine's letters: ``a`` alarm, ``d`` disabled, ``E`` error, ``u`` unreachable.
    """

    name: str
    slots: int = 0
    slots_used: int = 0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One execution host, from qhost.

    Attributes:
        reachable: Whether it reports its load.
        gpus: Number of GPUs that jobs can use, without those that processes outside of jobs block;
            None if the cell has no number for the host.
        gpus_used: Number of GPUs that running jobs requested.
        gpu_shares: Number of GPUs that jobs can share, including the shares in use; None if the
            cell has no number for the host.
        gpu_shares_used: Sum of the shares that running jobs requested.
        gpu_state: Last report of its sensor, see :mod:`sge_jobs.gpu_state`; empty without a sensor.
        gpu_fault: Why it is out of the rotation, as its sensor reports it; see
            :func:`sge_jobs.cell.rotation.fault_of`.
    """

    name: str
    reachable: bool
    cores: int = 0
    slots: int = 0
    slots_used: int = 0
    load: float | None = None
    gpus: int | None = None
    gpus_used: int = 0
    gpu_shares: float | None = None
    gpu_shares_used: float = 0.0
    gpu_state: str = ""
    gpu_fault: str = ""
    queues: tuple[QueueInstance, ...] = ()
