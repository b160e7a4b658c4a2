"""One node of a cluster, as plugins see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from starcluster.aws.model import Instance
from starcluster.errors import HostKeyMismatch, SshError
from starcluster.node.hosts_file import with_names, without_names
from starcluster.node.in_ec2 import InEc2, Power
from starcluster.node.packages import NodePackages
from starcluster.node.users import NodeUsers

if TYPE_CHECKING:
    from starcluster.node.shell import Shell

EXPORT_OPTIONS = "rw,async,no_root_squash,no_subtree_check"
MOUNT_OPTIONS = "rw,hard,noatime"


class Node(InEc2, NodeUsers, NodePackages):
    """One instance of a cluster, its SSH connection, and its methods for plugins."""

    def __init__(
        self, instance: Instance, connect: Callable[[Instance], Shell], ec2: Power | None = None
    ) -> None:
        """Prepare; nothing is sent. ``connect`` creates the shell at first use."""
        self.instance = instance
        self.alias = instance.alias or instance.id
        self._connect = connect
        self._ec2 = ec2
        self._shell: Shell | None = None
        self._lock = threading.Lock()
        self._facts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Node {self.alias} ({self.id})>"

    @property
    def ssh(self) -> Shell:
        """The node's connection."""
        with self._lock:
            if self._shell is None:
                self._shell = self._connect(self.instance)
            return self._shell

    def close(self) -> None:
        """Close the connection if there is one."""
        with self._lock:
            if self._shell is not None:
                self._shell.close()
            self._shell = None

    def is_up(self) -> bool:
        """Return whether the instance runs and answers SSH."""
        return self.state == "running" and self.is_ssh_up()

    def is_ssh_up(self) -> bool:
        """Return whether it answers SSH; raises HostKeyMismatch for a wrong host key."""
        try:
            self.ssh.connect()
        except HostKeyMismatch:
            raise
        except SshError:
            return False
        return True

    # Hardware

    @property
    def num_processors(self) -> int:
        """Number of processors."""
        return self._fact("nproc", "nproc")

    @property
    def memory(self) -> int:
        """Memory in MiB."""
        return self._fact("memory", "awk '/^MemTotal:/ {print int($2/1024)}' /proc/meminfo")

    def _fact(self, name: str, command: str) -> int:
        if name not in self._facts:
            self._facts[name] = int(self.ssh.checked(["sh", "-c", command]))
        return self._facts[name]

    # Host names

    def set_hostname(self, hostname: str | None = None) -> None:
        """Set the host name, now and after a reboot. Default: the alias."""
        name = hostname or self.alias
        self.ssh.write_file("/etc/hostname", f"{name}\n")
        self.ssh.checked(["hostname", name])

    def add_to_etc_hosts(self, nodes: Iterable[Node]) -> None:
        """Add the names of ``nodes`` to /etc/hosts of this node."""
        text = self.ssh.read_file("/etc/hosts")
        addresses = {node.alias: node.private_ip_address for node in nodes}
        self.ssh.write_file("/etc/hosts", with_names(text, addresses))

    def remove_from_etc_hosts(self, nodes: Iterable[Node]) -> None:
        """Remove the names of ``nodes`` from /etc/hosts of this node."""
        text = self.ssh.read_file("/etc/hosts")
        self.ssh.write_file("/etc/hosts", without_names(text, [node.alias for node in nodes]))

    # Shared directories

    def export_fs_to_nodes(self, nodes: Iterable[Node], export_paths: Sequence[str]) -> None:
        """Export directories of this node to ``nodes`` by NFS."""
        names = [node.alias for node in nodes if node is not self]
        text = self.ssh.read_file("/etc/exports") if self.ssh.isfile("/etc/exports") else ""
        have = {tuple(line.split("(")[0].split()) for line in text.splitlines()}
        new = [
            f"{path} {name}({EXPORT_OPTIONS})"
            for path in export_paths
            for name in names
            if (path, name) not in have
        ]
        if new:
            self.ssh.write_file("/etc/exports", "\n".join([*text.splitlines(), *new, ""]))
        self.ssh.checked(["exportfs", "-ra"])

    def stop_exporting_fs_to_nodes(
        self, nodes: Iterable[Node], paths: Sequence[str] | None = None
    ) -> None:
        """Stop exporting ``paths`` to ``nodes``. Default: all paths."""
        gone = {node.alias for node in nodes}
        kept = [
            line
            for line in self.ssh.read_file("/etc/exports").splitlines()
            if not _is_export(line, gone, paths)
        ]
        self.ssh.write_file("/etc/exports", "".join(f"{line}\n" for line in kept))
        self.ssh.checked(["exportfs", "-ra"])

    def mount_nfs_shares(self, server_node: Node, remote_paths: Iterable[str]) -> None:
        """Mount directories of ``server_node`` here, under the same paths."""
        for path in remote_paths:
            if self.ssh.run(["mountpoint", "-q", path]).status:
                self.ssh.makedirs(path)
                source = f"{server_node.alias}:{path}"
                self.ssh.checked(["mount", "-t", "nfs", "-o", MOUNT_OPTIONS, source, path])


def _is_export(line: str, names: set[str], paths: Sequence[str] | None) -> bool:
    path, _, host = line.split("(")[0].partition(" ")
    return host.strip() in names and (paths is None or path in paths)
