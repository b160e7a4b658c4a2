"""The interface of ``sge_jobs.Queue`` to the fake queue, which runs jobs as processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sge_jobs import (
    AccountingRecord,
    Host,
    JobSpec,
    JobStatus,
    QueuedJob,
    QueueUnreachable,
    job_script,
)
from spearmint.drivers import DriverSettings, FailedStart, QueueJobState, SubmitSpec
from spearmint.drivers.testing import FakeQueue
from spearmint.errors import DriverUnreachable

LETTERS = {
    QueueJobState.PENDING: (JobStatus.PENDING, "qw"),
    QueueJobState.HELD: (JobStatus.HELD, "hqw"),
    QueueJobState.RUNNING: (JobStatus.RUNNING, "r"),
    QueueJobState.SUSPENDED: (JobStatus.SUSPENDED, "s"),
    QueueJobState.ERROR: (JobStatus.ERROR, "Eqw"),
}
RUN = 'JOB_ID=${FAKE_JOB#job.} exec bash -c "$0"'


class FakeCell:
    """An ``sge_jobs.Queue`` with numbers as ids; tests change its ``queue``."""

    def __init__(self, settings: DriverSettings) -> None:
        self.queue = FakeQueue(settings)
        self.specs: dict[str, JobSpec] = {}
        self.counts = "JOB"

    def submit(self, spec: JobSpec, *, inherit: Sequence[int]) -> str:
        job = SubmitSpec(
            token=spec.name,
            label=spec.name,
            argv=("sh", "-c", RUN, job_script(spec)),
            directory=spec.directory,
            output=spec.directory / "job.log",
            environment={},
            resources=None,
        )
        id = self._answer(lambda: self.queue.submit(job, inherit=inherit))
        number = id.removeprefix("job.")
        self.specs[number] = spec
        return number

    def jobs(self) -> list[QueuedJob]:
        return [
            QueuedJob(
                id=job.id.removeprefix("job."),
                name=job.token,
                owner="me",
                state=LETTERS[job.state][1],
                status=LETTERS[job.state][0],
            )
            for job in self._answer(self.queue.jobs)
        ]

    def _answer(self, call):
        try:
            return call()
        except DriverUnreachable as error:
            raise QueueUnreachable(error.what, error.fix) from None

    def error_reason(self, id: str) -> str:
        return self.queue.reason(f"job.{id}")

    def failed_starts(self, ids: Iterable[str]) -> dict[str, FailedStart]:
        return {}

    def delete(self, ids: Iterable[str], *, force: bool = False) -> None:
        self._answer(lambda: self.queue.cancel([f"job.{id}" for id in ids]))

    def accounting(self, id: str) -> list[AccountingRecord]:
        return [
            AccountingRecord(
                id=id,
                name="x",
                owner="me",
                host=run.host,
                failed=100 if run.signal else 0,
                exit_status=run.exit_status or (128 + run.signal if run.signal else 0),
            )
            for run in self._answer(lambda: self.queue.accounting(f"job.{id}"))
        ]

    def consumable(self, name: str) -> str:
        return self.counts

    def hosts(self) -> list[Host]:
        return [
            Host(name="a", reachable=True, slots=4, gpus=2),
            Host(name="b", reachable=True, slots=1, gpus=8),
            Host(name="c", reachable=False, slots=4, gpus=2),
        ]
