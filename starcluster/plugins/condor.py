"""``setup_class = starcluster.plugins.condor.CondorPlugin``: HTCondor from Debian's package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import NodeError
from starcluster.logger import log
from starcluster.node.node import Node
from starcluster.utils import generate_passwd

CONFIG = "/etc/condor/config.d/60-starcluster"
PASSWORD = "/etc/condor/passwords.d/POOL"  # noqa: S105 - a path
_PACKAGES = ("condor", "htcondor")  # since Debian 13; on Ubuntu
_ON_MASTER = "MASTER, COLLECTOR, NEGOTIATOR, SCHEDD"
# All daemons know the password of the pool; the home directories are shared.
_SETTINGS = """\
CONDOR_HOST = {master}
UID_DOMAIN = starcluster
FILESYSTEM_DOMAIN = starcluster
TRUST_UID_DOMAIN = True
SOFT_UID_DOMAIN = True
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, PASSWORD
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_DEFAULT_INTEGRITY = REQUIRED
SEC_PASSWORD_DIRECTORY = /etc/condor/passwords.d
SEC_PASSWORD_FILE = {password}
ALLOW_READ = *@starcluster
ALLOW_WRITE = *@starcluster
ALLOW_DAEMON = condor_pool@*, condor@*, root@*
ALLOW_NEGOTIATOR = condor_pool@*, condor@*, root@*
ALLOW_ADMINISTRATOR = condor_pool@*, root@*
NETWORK_INTERFACE = {address}
DAEMON_LIST = {daemons}
# A small pool can match jobs every few seconds.
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
use FEATURE : PartitionableSlot
HAS_GPU = {has_gpu}
STARTD_ATTRS = $(STARTD_ATTRS) HAS_GPU
"""
_GPUS = "use FEATURE : GPUs\n"
_STOP = """
if [ -d /run/systemd/system ]; then
    systemctl stop condor
else
    pkill -x condor_master || :
    while pgrep -x condor_master >/dev/null; do sleep 0.1; done
fi
"""
_START = """
if [ -d /run/systemd/system ]; then
    systemctl enable --quiet condor
    systemctl start condor
else
    install -d -o condor -g condor /run/condor /run/lock/condor
    condor_master
fi
"""
_START_S = 120.0
# Jobs get SIGTERM, and as long as they asked for, at most this long; then they run elsewhere.
_LEAVE = """
condor_off -graceful -daemon startd
tries=$1
while pgrep -x condor_startd >/dev/null && [ $tries -gt 0 ]; do
    tries=$((tries - 1))
    sleep 1
done
"""
_LEAVE_S = 60


class CondorPlugin(DefaultClusterSetup):
    """Set up an HTCondor pool, best with ``disable_queue``: Grid Engine does not know of its jobs.

    Jobs can request the GPUs of nodes with a driver (``request_gpus``, ``HAS_GPU``).

    Args:
        master_is_exec_host: Whether the master also runs jobs. Default: true.
    """

    def __init__(self, master_is_exec_host: str = "true") -> None:
        super().__init__()
        self._on_master = master_is_exec_host.lower() not in ("false", "no", "0", "off")

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install and start HTCondor on all nodes."""
        password = self._password(master)
        self._set_up(master, master, password)
        others = [node for node in nodes if node is not master]
        for_each(others, lambda node: self._set_up(node, master, password))
        log.info("HTCondor runs on %d nodes. On the master: condor_status", len(nodes))

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Install and start HTCondor on the new node."""
        self._set_up(node, master, self._password(master))

    def on_remove_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Let the jobs of the node go, so that they run elsewhere before their lease ends."""
        argv = ["sh", "-c", _LEAVE, "sh", str(_LEAVE_S)]
        node.ssh.checked(argv, timeout_s=2 * _LEAVE_S)

    def _password(self, master: Node) -> str:
        """Return the password of the pool, which the master keeps."""
        if master.ssh.isfile(PASSWORD):
            return master.ssh.read_file(PASSWORD).strip()
        return generate_passwd(40)

    def _set_up(self, node: Node, master: Node, password: str) -> None:
        if not node.ssh.which("condor_master"):
            _install(node, _PACKAGES)
        daemons = _ON_MASTER if node is master else "MASTER"
        if node is not master or self._on_master:
            daemons += ", STARTD"
        has_gpu = "GPU " in node.ssh.run(["nvidia-smi", "-L"], timeout_s=_START_S).stdout
        settings = _SETTINGS.format(
            master=master.alias,
            password=PASSWORD,
            address=node.private_ip_address,
            daemons=daemons,
            has_gpu=has_gpu,
        )
        settings += _GPUS if has_gpu else ""
        had = node.ssh.read_file(CONFIG) if node.ssh.isfile(CONFIG) else ""
        if had == settings and not node.ssh.run(["pgrep", "-x", "condor_master"]).status:
            return
        # A run that is killed before the end leaves no daemon with the old settings.
        node.ssh.checked(["sh", "-c", _STOP], timeout_s=_START_S)
        node.ssh.makedirs("/etc/condor/passwords.d", 0o700)
        node.ssh.write_file(PASSWORD, f"{password}\n", 0o600)
        node.ssh.write_file(CONFIG, settings)
        node.ssh.checked(["sh", "-c", _START], timeout_s=_START_S)


def _install(node: Node, packages: Sequence[str]) -> None:
    for package in packages:
        found = node.ssh.execute(f"apt-cache show {package}", ignore_exit_status=True)
        if any(line.startswith("Filename:") for line in found):
            node.package_install(package)
            return
    raise NodeError(
        "the distribution has no package of HTCondor",
        "Use an image of Debian 13 or Ubuntu: starcluster listimages",
        alias=node.alias,
    )
