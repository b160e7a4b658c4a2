"""Grid Engine jobs in Python, with GPUs assigned to each job.

>>> from pathlib import Path
>>> from sge_jobs import JobSpec, Queue, Resources
>>> spec = JobSpec(
...     name="train",
...     argv=("python3", "train.py"),
...     directory=Path.cwd(),
...     resources=Resources(gpus=1, walltime_s=3600),
... )
>>> job_id = Queue().submit(spec)  # doctest: +SKIP

Uses only the standard library. Parts of it run on every node before each job, so names are imported
on first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sge_jobs.cell.desired import LOAD_REPORTS, LOST_HOSTS
    from sge_jobs.cell.packages import (
        DEBIAN_MIRRORS,
        DEBIAN_PACKAGES,
        HWLOC_PACKAGES,
        DebianPackage,
    )
    from sge_jobs.errors import InputError, QueueFull, QueueUnreachable, SgeJobsError, SubmitError
    from sge_jobs.exit_codes import RESCHEDULE
    from sge_jobs.model import AccountingRecord, Host, JobSpec, JobStatus, Obstacle, QueuedJob
    from sge_jobs.queue.qacct import parse_accounting
    from sge_jobs.queue.qsub import job_name, job_script, qsub_argv
    from sge_jobs.queue.queue import Queue
    from sge_jobs.resources import Resources
    from sge_jobs.sizes import read_size

__all__ = [
    "DEBIAN_MIRRORS",
    "DEBIAN_PACKAGES",
    "HWLOC_PACKAGES",
    "LOAD_REPORTS",
    "LOST_HOSTS",
    "RESCHEDULE",
    "AccountingRecord",
    "DebianPackage",
    "Host",
    "InputError",
    "JobSpec",
    "JobStatus",
    "Obstacle",
    "Queue",
    "QueueFull",
    "QueueUnreachable",
    "QueuedJob",
    "Resources",
    "SgeJobsError",
    "SubmitError",
    "job_name",
    "job_script",
    "parse_accounting",
    "qsub_argv",
    "read_size",
]

_HOMES = {
    "sge_jobs.cell.desired": ("LOAD_REPORTS", "LOST_HOSTS"),
    "sge_jobs.cell.packages": (
        "DEBIAN_MIRRORS",
        "DEBIAN_PACKAGES",
        "DebianPackage",
        "HWLOC_PACKAGES",
    ),
    "sge_jobs.errors": (
        "InputError",
        "QueueFull",
        "QueueUnreachable",
        "SgeJobsError",
        "SubmitError",
    ),
    "sge_jobs.exit_codes": ("RESCHEDULE",),
    "sge_jobs.model": (
        "AccountingRecord",
        "Host",
        "JobSpec",
        "JobStatus",
        "Obstacle",
        "QueuedJob",
    ),
    "sge_jobs.queue.qacct": ("parse_accounting",),
    "sge_jobs.queue.qsub": ("job_name", "job_script", "qsub_argv"),
    "sge_jobs.queue.queue": ("Queue",),
    "sge_jobs.resources": ("Resources",),
    "sge_jobs.sizes": ("read_size",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
