"""A real Slurm cluster on the test bed: a controller and hosts with declared GPUs."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed.cell import REPOSITORY, USER
from tests.testbed.condor import copy_python, python_folders
from tests.testbed.fabric import Fabric, Node
from tests.testbed.queue_cluster import QueueCluster, checked
from tests.testbed.roots import queues_root
from tests.testbed.slurm_accounting import CONFIGURATION as ACCOUNTING
from tests.testbed.slurm_accounting import start_accounting
from tests.waiting import until

PACKAGES = ("munge", "slurm-wlm")
SLOTS, GPUS = 4, 2

_CONFIGURATION = """
ClusterName=bed
SlurmctldHost=master
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
DefMemPerCPU=100
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=60
KillWait=3
MessageTimeout=15
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
NodeName={names} CPUs={slots} RealMemory=4000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=normal Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=9
PartitionName=short Nodes=ALL MaxTime=1 PriorityTier=1
"""
_GPUS = "".join(f"Name=gpu File={path}\n" for path in ("/dev/null", "/dev/zero")[:GPUS])
_CGROUP = "CgroupPlugin={plugin}\nConstrainDevices=no\n"


class SlurmCluster(QueueCluster):
    """A Slurm cluster: slurmctld runs on the first host, slurmd on every host."""

    def __init__(self, hosts: int = 3, *, slots: int = SLOTS, is_debian_13: bool = False) -> None:
        """Prepare.

        Args:
            is_debian_13: Use Slurm 24 of Debian 13, with accounting, instead of Slurm 22 of
                Debian 12, without.
        """
        self._slots, self._is_debian_13 = slots, is_debian_13
        super().__init__("slurm-", hosts)

    def make_fabric(self) -> Fabric:
        """Return the network of hosts with Slurm's packages."""
        if self._is_debian_13:
            return Fabric(binds=[self.shared, REPOSITORY, *python_folders()], root=queues_root())
        binds = [self.shared, REPOSITORY, Path(sys.base_prefix)]
        return Fabric(binds=binds, packages=PACKAGES)

    def bring_up(self) -> None:
        """Install and start Slurm; wait until every host is idle."""
        for node in self.hosts:
            self._prepare(node)
        if self._is_debian_13:
            start_accounting(self.master)
        self.start_controller()
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start_host, self.hosts))
        until(lambda: self.hosts_up() == len(self.names), 60)

    def _prepare(self, node: Node) -> None:
        if self._is_debian_13:
            copy_python(node)
        names = ",".join(self.names)
        text = _CONFIGURATION.format(names=names, slots=self._slots, gpus=GPUS)
        node.write("/etc/slurm/slurm.conf", text + ACCOUNTING * self._is_debian_13)
        node.write("/etc/slurm/gres.conf", _GPUS)
        plugin = "disabled" if self._is_debian_13 else "cgroup/v1"
        node.write("/etc/slurm/cgroup.conf", _CGROUP.format(plugin=plugin))
        for folder in ("/var/spool/slurmctld", "/var/spool/slurmd"):
            node.run("install", "-d", "-o", "slurm", folder)
        self._start_munge(node)

    def _start_munge(self, node: Node) -> None:
        node.run("install", "-d", "-o", "munge", "-g", "munge", "/run/munge")
        as_munge = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups"]
        checked(node.run(*as_munge, "/usr/sbin/munged"))

    # The daemons

    def start_controller(self) -> None:
        """Start slurmctld; wait until it answers."""
        checked(self.master.run("/usr/sbin/slurmctld"))
        until(lambda: self.run("squeue").returncode == 0, 30, 0.1)

    def save_jobs(self, id: str) -> None:
        """Wait until slurmctld has stored its jobs, including ``id``; a killed one forgets others.

        It stores them some seconds after a change of a job, such as this comment.
        """
        stored = self.master.inside("/var/spool/slurmctld/job_state")
        before = stored.stat().st_mtime_ns if stored.exists() else 0
        self.checked("scontrol", "update", f"JobId={id}", "Comment=stored")
        until(lambda: stored.exists() and stored.stat().st_mtime_ns != before, 60, 0.1)

    def start_host(self, node: Node) -> None:
        """Start slurmd on a host."""
        checked(node.run("/usr/sbin/slurmd"))

    def boot_again(self, node: Node) -> None:
        """Boot a killed host and start its daemons."""
        node.boot()
        self._start_munge(node)
        self.start_host(node)

    def hosts_up(self) -> int:
        """Return the number of hosts that accept jobs."""
        states = self.run("sinfo", "-hN", "-p", "normal", "-o", "%T").stdout.split()
        return sum(state in ("idle", "mixed", "allocated") for state in states)

    def heal(self) -> None:
        """Boot every host, start every daemon, and cancel all jobs."""
        if not self.master.processes("/usr/sbin/slurmctld"):
            self.start_controller()
        for node in self.hosts:
            if not node.is_up:
                self.boot_again(node)
        self.run("scancel", "--user", USER)
        for node in self.hosts:  # drained or down; other hosts refuse it
            self.run("scontrol", "update", f"NodeName={node.name}", "State=RESUME")
        until(lambda: not self.run("squeue", "-h").stdout.strip(), 60, 0.2)
        until(lambda: self.hosts_up() == len(self.names), 60, 0.2)
