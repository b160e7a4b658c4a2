"""The driver for Grid Engine."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import sge_jobs
from sge_jobs import (
    AccountingRecord,
    JobStatus,
    QueueUnreachable,
    SgeJobsError,
    job_script,
    qsub_argv,
)
from spearmint.drivers.base import DriverSettings
from spearmint.drivers.queue import (
    Dialect,
    EndedRun,
    FailedStart,
    Obstacle,
    Queue,
    QueueHost,
    QueueJob,
    QueueJobState,
    SubmitSpec,
)
from spearmint.drivers.queue_driver import QueueDriver
from spearmint.drivers.sge.ends import ended_run
from spearmint.drivers.sge.spec import job_spec, require_gpus_of_each_slot, slots_of
from spearmint.errors import DriverError, DriverUnreachable, InputError, QueueFull
from spearmint.resources import Resources

_STATES = {
    JobStatus.PENDING: QueueJobState.PENDING,
    JobStatus.HELD: QueueJobState.HELD,
    JobStatus.RUNNING: QueueJobState.RUNNING,
    JobStatus.SUSPENDED: QueueJobState.SUSPENDED,
    JobStatus.ERROR: QueueJobState.ERROR,
    JobStatus.ENDING: QueueJobState.ENDING,
}


class GridEngine(Queue):
    """Implements the calls of a queue with qsub, qstat, qdel, qacct and qhost."""

    def __init__(self, settings: DriverSettings, *, queue: sge_jobs.Queue | None = None) -> None:
        self._queue = queue or sge_jobs.Queue()
        self._walltime_s = settings.resources.walltime_s

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str:
        """Run qsub."""
        with _translated():
            return self._queue.submit(job_spec(spec), inherit=inherit)

    def jobs(self) -> Sequence[QueueJob]:
        """Run qstat."""
        with _translated():
            return [
                QueueJob(
                    id=job.id,
                    token=job.name.rpartition("-")[2],
                    state=_STATES[job.status],
                    text=job.state,
                    host=job.host,
                    is_rerun="R" in job.state,
                )
                for job in self._queue.jobs()
            ]

    def cancel(self, ids: Collection[str]) -> None:
        """Run qdel."""
        with _translated():
            self._queue.delete(ids)

    def hosts(self, need: Resources) -> Sequence[QueueHost]:
        """Run qhost; omit hosts that do not answer."""
        with _translated():
            return [
                QueueHost(
                    name=host.name,
                    slots=slots_of(host, need.queue),
                    gpus=host.gpus or 0,
                    gpu_shares=host.gpu_shares or 0.0,
                )
                for host in self._queue.hosts()
                if host.reachable
            ]

    def accounting(self, id: str) -> Sequence[EndedRun]:
        """Run qacct."""
        with _translated():
            return [ended_run(record, self._walltime_s) for record in self._queue.accounting(id)]

    def reason(self, id: str) -> str:
        """Run qstat -j."""
        with _translated():
            return self._queue.error_reason(id)

    def failed_start(self, id: str) -> FailedStart | None:
        """Run qstat -j; if it has no host, run qacct."""
        with _translated():
            start = self._queue.failed_starts([id]).get(id)
            if start is None:
                return None
            host = start.host or _host_of_failure(self._queue.accounting(id))
        if not host:
            return None
        return FailedStart(host=host, reason=start.reason, times=start.times, at=start.at)

    def obstacle(self, id: str) -> Obstacle | None:
        """Run qalter -w v, which changes nothing, and qhost."""
        with _translated():
            found = self._queue.obstacle(id)
        if found is None:
            return None
        return Obstacle(reason=found.reason, fix=found.fix, key=found.key, passes=found.passes)

    def preview(self, spec: SubmitSpec) -> str:
        """Return the qsub command line and the script for its standard input.

        Raises:
            InputError: Hosts of a trial other than its first one would get no GPUs.
        """
        with _translated():
            job = job_spec(spec)
            if spec.resources.nodes > 1:
                require_gpus_of_each_slot(self._queue, job)
            return f"{shlex.join(['qsub', *qsub_argv(job)])} <<'END'\n{job_script(job)}END"


class SgeDriver(QueueDriver):
    """Run trials as Grid Engine jobs, each on its own GPUs."""

    name = "SGE"
    queue_type = GridEngine
    dialect: ClassVar[Dialect] = Dialect(
        queue="Grid Engine",
        job_id_variable="JOB_ID",
        rerun_exit_code=sge_jobs.RESCHEDULE,
        limits_time=("h_rt", "s_rt"),
        accounting="qacct",
        release="qrls {id}",
        resume="qmod -usj {id}",
        retry="qmod -cj {id}",
        cancel="qdel {id}",
        forget="qdel -f {id}",
    )


def _host_of_failure(records: Sequence[AccountingRecord]) -> str:
    """Return the host of the last run if it failed; empty otherwise."""
    last = max(records, key=lambda record: record.ended or 0.0, default=None)
    return last.host if last is not None and last.failed else ""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except QueueUnreachable as error:
        raise DriverUnreachable(error.what, error.fix) from error
    except sge_jobs.QueueFull as error:
        raise QueueFull(error.what, error.fix) from error
    except sge_jobs.InputError as error:
        raise InputError(error.what, error.fix) from error
    except SgeJobsError as error:
        raise DriverError(error.what, error.fix) from error
