"""Grid Engine in memory, for tests of the SGE driver."""

from __future__ import annotations

from collections.abc import Iterable

from sge_jobs.errors import QueueUnreachable
from sge_jobs.model import AccountingRecord, Host, JobSpec, JobStatus, QueuedJob

LETTERS = {
    JobStatus.PENDING: "qw",
    JobStatus.HELD: "hqw",
    JobStatus.RUNNING: "r",
    JobStatus.SUSPENDED: "s",
    JobStatus.ERROR: "Eqw",
}


class FakeQueue:
    """Grid Engine in memory. ``silent``: no answer; ``loses``: takes a job, its answer is lost."""

    def __init__(self) -> None:
        self.specs: dict[str, JobSpec] = {}
        self.listed: dict[str, JobStatus] = {}
        self.records: dict[str, list[AccountingRecord]] = {}
        self.silent = self.loses = False
        self.asked = 0
        self.deleted: list[str] = []
        self.stubborn: set[str] = set()

    def submit(self, spec: JobSpec, *, inherit: Iterable[int] = ()) -> str:
        self._answer()
        assert list(inherit), "a qsub that outlives us must be waited for"
        job_id = str(len(self.specs) + 1)
        self.specs[job_id], self.listed[job_id] = spec, JobStatus.PENDING
        if self.loses:
            raise QueueUnreachable("qsub gave no answer")
        return job_id

    def jobs(self, user: str | None = None) -> list[QueuedJob]:
        self._answer()
        self.asked += 1
        return [
            QueuedJob(id=id, name=self.specs[id].name, owner="me", state=LETTERS[status],
                      status=status)
            for id, status in self.listed.items()
        ]  # fmt: skip

    def _answer(self) -> None:
        if self.silent:
            raise QueueUnreachable("the master does not answer", "Start it.")

    def error_reason(self, id: str) -> str:
        return "can't chdir to /gone: No such file or directory"

    def delete(self, ids: Iterable[str], *, force: bool = False) -> None:
        self._answer()
        for id in ids:
            self.deleted.append(id)
            if id not in self.stubborn:
                self.listed.pop(id, None)

    def accounting(self, id: str) -> list[AccountingRecord]:
        self._answer()
        return self.records.get(id, [])

    def hosts(self) -> list[Host]:
        self._answer()
        return [
            Host(name="a", reachable=True, slots=4, gpus=2),
            Host(name="b", reachable=True, slots=1, gpus=8),
            Host(name="c", reachable=False, slots=4, gpus=2),
        ]
