"""The driver for Slurm."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from typing import ClassVar

from spearmint.drivers.base import DriverSettings
from spearmint.drivers.queue import (
    Dialect,
    EndedRun,
    Obstacle,
    Queue,
    QueueHost,
    QueueJob,
    SubmitSpec,
)
from spearmint.drivers.queue_commands import Answer
from spearmint.drivers.queue_driver import QueueDriver
from spearmint.drivers.slurm.commands import ask, words
from spearmint.drivers.slurm.ends import ACCOUNTING, parse_accounting, parse_job, run_of_job
from spearmint.drivers.slurm.listing import FORMAT, HOSTS, parse_hosts, parse_jobs
from spearmint.drivers.slurm.options import partition_of, sbatch_argv
from spearmint.drivers.slurm.reasons import obstacle_of
from spearmint.drivers.slurm.script import RERUN, job_script
from spearmint.errors import DriverError, QueueFull
from spearmint.resources import Resources

_ID = re.compile(r"^(\d+)(;\S+)?$", re.MULTILINE)
_FULL = re.compile(r"Max(Submit)?Job\w*Limit|QOSMaxSubmit|unable to accept job", re.IGNORECASE)
_UNKNOWN = re.compile(r"invalid job id|already (completing|completed)", re.IGNORECASE)
_NO_ACCOUNTING = re.compile(r"accounting storage is disabled|not running a supported", re.I)
_IDS = 200  # of one scancel


class Slurm(Queue):
    """Implements the calls of a queue with sbatch, squeue, scancel, scontrol, sinfo and sacct."""

    def __init__(self, settings: DriverSettings) -> None:
        """Call no command."""

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str:
        """Run sbatch."""
        script = os.fsencode(job_script(spec))
        answer = ask("sbatch", *sbatch_argv(spec), stdin=script, inherit=inherit)
        if found := _ID.search(answer.out):
            return found[1]
        error = QueueFull if _FULL.search(answer.err) else DriverError
        raise error(f"sbatch refused the job: {words(answer.err) or 'no message'}")

    def jobs(self) -> Sequence[QueueJob]:
        """Run squeue."""
        user = f"--user={os.getuid()}"
        return parse_jobs(_checked("squeue", "--noheader", "--all", user, f"--Format={FORMAT}"))

    def cancel(self, ids: Collection[str]) -> None:
        """Run scancel."""
        listed = list(ids)
        for first in range(0, len(listed), _IDS):
            answer = ask("scancel", *listed[first : first + _IDS])
            wrong = [line for line in answer.err.splitlines() if not _UNKNOWN.search(line)]
            if answer.status and wrong:
                raise DriverError(f"scancel failed: {words(answer.err)}")

    def hosts(self, need: Resources) -> Sequence[QueueHost]:
        """Run sinfo; omit hosts that are down or drained."""
        found = _checked("sinfo", "--Node", "--noheader", "--all", f"--format={HOSTS}")
        return parse_hosts(found, partition_of(need))

    def accounting(self, id: str) -> Sequence[EndedRun] | None:
        """Run scontrol, which knows a job for some minutes; then run sacct, if there is any."""
        if fields := _job(id):
            run = run_of_job(fields)
            return [] if run is None else [run]
        options = ("--allocations", "--duplicates", "--parsable2", "--noheader")
        answer = ask("sacct", *options, f"--format={ACCOUNTING}", f"--jobs={id}")
        if answer.status and _NO_ACCOUNTING.search(answer.err):
            return None
        return parse_accounting(_output("sacct", answer))

    def reason(self, id: str) -> str:
        """Run scontrol."""
        return _job(id).get("Reason", "").replace("_", " ")

    def obstacle(self, id: str) -> Obstacle | None:
        """Run scontrol."""
        fields = _job(id)
        return obstacle_of(id, fields.get("JobState", ""), fields.get("Reason", ""))

    def preview(self, spec: SubmitSpec) -> str:
        """Return the sbatch command line and the script for its standard input."""
        return f"{shlex.join(['sbatch', *sbatch_argv(spec)])} <<'END'\n{job_script(spec)}END"


class SlurmDriver(QueueDriver):
    """Run trials as Slurm jobs, each on its own GPUs."""

    name = "SLURM"
    queue_type = Slurm
    dialect: ClassVar[Dialect] = Dialect(
        queue="Slurm",
        job_id_variable="SLURM_JOB_ID",
        rerun_exit_code=RERUN,
        limits_time=("time", "time-min", "deadline"),
        accounting="sacct",
        release="scontrol release {id}",
        resume="scontrol resume {id}",
        retry="scontrol release {id}",
        cancel="scancel {id}",
        forget="scontrol update NodeName=HOST State=DOWN Reason=lost; scancel {id}",
    )


def _job(id: str) -> dict[str, str]:
    """Return what slurmctld knows about a job; empty if it forgot the job."""
    answer = ask("scontrol", "--oneliner", "show", "job", id)
    if answer.status and _UNKNOWN.search(answer.err):
        return {}
    return parse_job(_output("scontrol", answer))


def _checked(name: str, *arguments: str) -> str:
    return _output(name, ask(name, *arguments))


def _output(name: str, answer: Answer) -> str:
    """Return what a command printed; raises DriverError if it failed."""
    if answer.status:
        raise DriverError(f"{name} failed: {words(answer.err)}")
    return answer.out
