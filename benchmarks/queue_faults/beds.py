"""The queues of the test bed, and how their daemons and hosts fail."""

from __future__ import annotations

import os
import signal
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.testbed.celery_hosts import CeleryHosts
from tests.testbed.cell import REPOSITORY, UID, Cell
from tests.testbed.condor import CondorPool
from tests.testbed.fabric import Fabric, Node
from tests.testbed.queue_cluster import QueueCluster
from tests.testbed.slurm import SlurmCluster

DISK = Path("/.testbed/disk")
"""A small disk that all hosts share."""
_DISK_SIZE = "32m"


class Bed(ABC):
    """A queue on hosts of the test bed, and a small disk that they share."""

    driver: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ("--queue-ahead=2",)
    daemons: ClassVar[str] = ""
    """What :meth:`stop_daemons` stops, for the table; empty if there are none."""

    def __init__(self) -> None:
        self.cluster: Any = self.make_cluster()

    @abstractmethod
    def make_cluster(self) -> Cell | QueueCluster:
        """Return the hosts."""

    def __enter__(self) -> Self:
        """Start the queue."""
        self.cluster.__enter__()
        try:
            self._mount()
            self.prepare()
        except BaseException:
            self.cluster.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all hosts."""
        self.cluster.__exit__()

    def _mount(self) -> None:
        fabric = self.cluster.fabric
        disk = str(fabric.work / DISK.name)
        options = f"size={_DISK_SIZE},mode=755,uid={UID},gid={UID}"
        fabric.run("mkdir", disk)
        fabric.run("mount", "-t", "tmpfs", "-o", options, "disk", disk)

    def prepare(self) -> None:  # noqa: B027 - overriding is optional
        """Start what needs the disk."""

    def finish(self) -> None:  # noqa: B027 - overriding is optional
        """Stop what runs as the user next to trials."""

    def stop_daemons(self) -> None:
        """Kill the daemons of the queue, as a power failure of its host does."""
        raise NotImplementedError

    def start_daemons(self) -> None:
        """Start them again."""
        raise NotImplementedError

    def jobs(self) -> list[str]:
        """Return the jobs in the queue."""
        return []

    def leftovers(self) -> list[str]:
        """Return the command lines of the user's processes on all hosts that are up."""
        found = []
        for node in self.up():
            rows = node.run("ps", "-o", "pid=,args=", "-U", str(UID)).stdout.splitlines()
            found += [f"{node.name}: {row.strip()}" for row in rows if row.strip()]
        return found

    def up(self) -> list[Node]:
        """Return the hosts that were not killed."""
        return [node for node in self.cluster.hosts if node.is_up]

    def kill_all(self, *names: str) -> None:
        """Send SIGKILL to all processes of the first host with these names."""
        for name in names:
            for pid in self.cluster.master.processes(name):
                os.kill(pid, signal.SIGKILL)


class _OneHost(QueueCluster):
    """One host without a queue."""

    def __init__(self) -> None:
        super().__init__("local-", 1)

    def make_fabric(self) -> Fabric:
        return Fabric(binds=[self.shared, REPOSITORY, Path(sys.base_prefix)])

    def bring_up(self) -> None:
        pass


class LocalBed(Bed):
    """Trials as processes of one host."""

    driver = "local"
    options = ("--max-concurrent=6",)

    def make_cluster(self) -> QueueCluster:
        """Return one host."""
        return _OneHost()


class SgeBed(Bed):
    """Grid Engine, as ``sge-jobs setup`` configures it."""

    driver = "SGE"
    daemons = "sge_qmaster"

    def make_cluster(self) -> Cell:
        """Return a cell."""
        return Cell()

    def stop_daemons(self) -> None:
        """Kill the master."""
        self.kill_all("sge_qmaster")

    def start_daemons(self) -> None:
        """Start the master."""
        self.cluster.start_master()

    def jobs(self) -> list[str]:
        """Return the jobs in the queue."""
        rows: str = self.cluster.run("qstat", "-u", "*").stdout
        return rows.splitlines()[2:]


class SlurmBed(Bed):
    """Slurm."""

    driver = "SLURM"
    daemons = "slurmctld"

    def make_cluster(self) -> QueueCluster:
        """Return a cluster."""
        return SlurmCluster()

    def stop_daemons(self) -> None:
        """Kill the controller of Slurm."""
        self.kill_all("/usr/sbin/slurmctld")

    def start_daemons(self) -> None:
        """Start it."""
        self.cluster.start_controller()

    def jobs(self) -> list[str]:
        """Return the jobs in the queue."""
        rows: str = self.cluster.run("squeue", "-h").stdout
        return rows.splitlines()


class CondorBed(Bed):
    """HTCondor."""

    driver = "HTCONDOR"
    daemons = "schedd, collector and negotiator"

    def make_cluster(self) -> QueueCluster:
        """Return a pool."""
        return CondorPool()

    def stop_daemons(self) -> None:
        """Kill the daemons of the first host but its startd; freeze the one that restarts them."""
        self._send(signal.SIGSTOP)
        self.kill_all("condor_schedd", "condor_collector", "condor_negotiator")

    def start_daemons(self) -> None:
        """Let it restart them."""
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        for pid in self.cluster.master.processes("condor_master"):
            os.kill(pid, number)

    def jobs(self) -> list[str]:
        """Return the jobs in the queue."""
        return [str(job["id"]) for job in self.cluster.jobs()]


class CeleryBed(Bed):
    """Celery with a Redis that stores nothing."""

    driver = "CELERY"
    daemons = "Redis"

    def make_cluster(self) -> QueueCluster:
        """Return hosts with a broker."""
        return CeleryHosts(root=DISK)

    def prepare(self) -> None:
        """Start the workers."""
        self.cluster.start_workers()

    def finish(self) -> None:
        """Stop the workers."""
        self.cluster.stop_workers()

    def stop_daemons(self) -> None:
        """Kill the broker."""
        self.cluster.kill_broker()

    def start_daemons(self) -> None:
        """Start it."""
        self.cluster.start_broker()


BEDS: dict[str, type[Bed]] = {
    bed.driver: bed for bed in (LocalBed, SgeBed, SlurmBed, CondorBed, CeleryBed)
}
