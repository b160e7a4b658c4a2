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
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, PASSWORD
SEC_PASSWORD_DIRECTORY = /etc/condor/passwords.d
SEC_PASSWORD_FILE = {password}
ALLOW_DAEMON = condor_pool@*, condor@*, root@*
ALLOW_NEGOTIATOR = condor_pool@*, condor@*, root@*
ALLOW_ADMINISTRATOR = condor_pool@*, root@*
NETWORK_INTERFACE = {address}
DAEMON_LIST = {daemons}
"""
_START = """
if [ -d /run/systemd/system ]; then
    systemctl enable --quiet condor
    systemctl restart condor
else
    pkill -x condor_master || :
    while pgrep -x condor_master >/dev/null; do sleep 0.1; done
    condor_master
fi
"""
_START_S = 120.0


class CondorPlugin(DefaultClusterSetup):
    """Set up an HTCondor pool, best with ``disable_queue``: Grid Engine does not know of its jobs.

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
        settings = _SETTINGS.format(
            master=master.alias,
            password=PASSWORD,
            address=node.private_ip_address,
            daemons=daemons,
        )
        had = node.ssh.read_file(CONFIG) if node.ssh.isfile(CONFIG) else ""
        if had == settings and not node.ssh.run(["pgrep", "-x", "condor_master"]).status:
            return
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
