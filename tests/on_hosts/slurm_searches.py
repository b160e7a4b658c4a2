"""Searches on a Slurm cluster whose trials record where and when they ran."""

from __future__ import annotations

from tests.on_hosts.queue_searches import QueueSearch


class SlurmSearch(QueueSearch):
    """An experiment in the shared home whose trials write records of their runs."""

    driver = "SLURM"
    id_variable = "SLURM_JOB_ID"

    def queued(self) -> str:
        return self.cell.run("squeue").stdout + self.cell.run("sinfo", "-R").stdout

    def jobs_in(self, state: str) -> list[str]:
        """Return the ids of the jobs in a state such as PENDING."""
        rows = self.cell.run("squeue", "-h", "-t", state, "-o", "%i").stdout
        return rows.split()

    def restart_now(self) -> None:
        """Start requeued jobs without the two minutes that Slurm waits."""
        rows = self.cell.run("squeue", "-h", "-t", "PENDING", "-o", "%i|%r").stdout.split()
        for row in rows:
            id, _, reason = row.partition("|")
            if reason == "BeginTime":
                self.cell.run("scontrol", "update", f"JobId={id}", "StartTime=now")

    def has_jobs(self) -> bool:
        return bool(self.cell.run("squeue", "-h").stdout.strip())
