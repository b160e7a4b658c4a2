"""A real HTCondor pool on the test bed: a schedd, and hosts of Debian 13 with simulated GPUs."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed.cell import REPOSITORY, UID, USER
from tests.testbed.fabric import Fabric, Node
from tests.testbed.queue_cluster import QueueCluster, checked
from tests.testbed.roots import queues_root
from tests.waiting import until

SLOTS, GPUS = 4, 2
HIDDEN = "/var/tmp"
"""Each job has its own directory of this name."""

_CONFIGURATION = """
CONDOR_HOST = master
NETWORK_INTERFACE = {address}
UID_DOMAIN = bed
FILESYSTEM_DOMAIN = {domain}
TRUST_UID_DOMAIN = True
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, PASSWORD
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_PASSWORD_DIRECTORY = /etc/condor/passwords.d
SEC_PASSWORD_FILE = /etc/condor/passwords.d/POOL
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = condor_pool@*, condor@*, root@*
ALLOW_NEGOTIATOR = condor_pool@*, condor@*, root@*
ALLOW_ADMINISTRATOR = condor_pool@*, root@*
DAEMON_LIST = {daemons}
NUM_CPUS = {slots}
MEMORY = 4000
use FEATURE : PartitionableSlot
use FEATURE : GPUs
GPU_DISCOVERY_EXTRA = -extra -simulate:1,{gpus}
START = True
PREEMPT = False
MOUNT_UNDER_SCRATCH = {hidden}
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 2
UPDATE_INTERVAL = 3
POLLING_INTERVAL = 2
PERIODIC_EXPR_INTERVAL = 3
PERIODIC_EXPR_TIMESLICE = 1
MASTER_BACKOFF_CONSTANT = 2
JOB_DEFAULT_LEASE_DURATION = 40
DAGMAN_USER_LOG_SCAN_INTERVAL = 1
"""
_MANAGER = "MASTER, COLLECTOR, NEGOTIATOR, SCHEDD"


class CondorPool(QueueCluster):
    """An HTCondor pool: the schedd runs on the first host, a startd on every host.

    Args:
        hosts: Number of hosts.
        slots: Cores of each host.
        shares_files: Whether all hosts have the home directory of the user; otherwise each has its
            own, and the first host runs no trials.
    """

    def __init__(self, hosts: int = 3, *, slots: int = SLOTS, shares_files: bool = True) -> None:
        # Not in /tmp: on a real pool jobs do not see it.
        super().__init__("condor-", hosts, within="/srv")
        self._slots, self.shares_files = slots, shares_files

    def make_fabric(self) -> Fabric:
        """Return the network of hosts of Debian 13, with this machine's Python."""
        return Fabric(binds=[self.shared, REPOSITORY, *python_folders()], root=queues_root())

    def bring_up(self) -> None:
        """Start the daemons; wait until every host accepts jobs."""
        for node in self.hosts:
            self._prepare(node)
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start_host, self.hosts))
        until(lambda: self.hosts_up() == self._executing(), 120)

    def _executing(self) -> int:
        return len(self.names) - (not self.shares_files)

    def _prepare(self, node: Node) -> None:
        executes = "MASTER, STARTD"
        shared = f"{_MANAGER}, STARTD" if self.shares_files else _MANAGER
        text = _CONFIGURATION.format(
            address=node.ip,
            domain="bed" if self.shares_files else node.name,
            daemons=shared if node is self.master else executes,
            slots=self._slots,
            gpus=GPUS,
            hidden=HIDDEN,
        )
        node.write("/etc/condor/config.d/10-bed", text)
        node.write("/etc/condor/passwords.d/POOL", "of the pool", 0o600)
        copy_python(node)

    def start_host(self, node: Node) -> None:
        """Start the daemons of a host."""
        if not self.shares_files and node is not self.master:
            options = f"mode=700,uid={UID},gid={UID}"
            checked(node.run("mount", "-t", "tmpfs", "-o", options, "home", str(self.home)))
        node.run("install", "-d", "-o", "condor", "-g", "condor", "/run/condor", "/run/lock/condor")
        checked(node.run("condor_master"))

    def boot_again(self, node: Node) -> None:
        """Boot a killed host and start its daemons."""
        node.boot()
        self.start_host(node)

    def hosts_up(self) -> int:
        """Return the number of hosts that accept jobs, if the schedd answers."""
        ready = self.run("condor_q").returncode == 0
        names = self.run("condor_status", "-autoformat", "Machine").stdout.split()
        return len(set(names)) if ready else 0

    def jobs(self) -> list[dict[str, object]]:
        """Return the attributes of all jobs that have not ended, and the number as ``id``.

        Wait for the schedd: it restarts if it was killed.
        """
        shown: list[dict[str, object]] = []

        def asked() -> bool:
            done = self.run("condor_q", "-allusers", "-json")
            shown[:] = json.loads(done.stdout or "[]") if done.returncode == 0 else []
            return done.returncode == 0

        until(asked, 120, 0.2)
        return [{**job, "id": f"{job['ClusterId']}.{job['ProcId']}"} for job in shown]

    def heal(self) -> None:
        """Boot every host and remove all jobs."""
        for node in self.hosts:
            if not node.is_up:
                self.boot_again(node)
        until(lambda: self.hosts_up() == self._executing(), 120, 0.2)
        self.run("condor_rm", USER)

        def is_empty() -> bool:
            self.run("condor_rm", "-forcex", USER)
            return not self.jobs()

        until(is_empty, 60, 0.5)


def copy_python(node: Node) -> None:
    """Give a host this machine's Python, if that is the system's."""
    if sys.base_prefix == "/usr":
        program = Path(sys.executable).resolve()
        shutil.copy2(program, node.inside(program))
        node.run("ln", "-sfn", program.name, "/usr/bin/python3")


def python_folders() -> list[Path]:
    """Return the directories of this machine's Python and of its packages."""
    is_system = sys.base_prefix == "/usr"
    own = Path(sysconfig.get_path("stdlib")) if is_system else Path(sys.base_prefix)
    packages = [Path(entry) for entry in sys.path if entry.endswith("-packages")]
    inside = (REPOSITORY, own)
    return [own, *(path for path in packages if not any(map(path.is_relative_to, inside)))]
