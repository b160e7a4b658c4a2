"""Searches on an HTCondor pool whose trials record where and when they ran."""

from __future__ import annotations

from tests.on_hosts.queue_searches import QueueSearch

IDLE, RUNNING, HELD = 1, 2, 5


class CondorSearch(QueueSearch):
    """An experiment in the shared home whose trials write records of their runs."""

    driver = "HTCONDOR"
    id_variable = "CONDOR_JOB_ID"

    def queued(self) -> str:
        return self.cell.run("condor_q", "-allusers", "-nobatch", "-hold").stdout

    def has_jobs(self) -> bool:
        return bool(self.cell.jobs())

    def jobs_in(self, status: int) -> list[str]:
        """Return the numbers of the jobs in a state such as :data:`IDLE`."""
        return [job["id"] for job in self.cell.jobs() if job["JobStatus"] == status]
