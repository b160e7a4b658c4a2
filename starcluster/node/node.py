"""One node of a cluster, as plugins see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from starcluster.aws.model import Instance
from starcluster.errors import ClusterError, HostKeyMismatch, SshError
from starcluster.model import is_master
from starcluster.node.hosts_file import with_names, without_names
from starcluster.node.packages import NodePackages
from starcluster.node.users import NodeUsers

if TYPE_CHECKING:
    from starcluster.node.shell import Shell

EXPORT_OPTIONS = "rw,async,no_root_squash,no_subtree_check"
MOUNT_OPTIONS = "rw,hard,noatime"


class Power(Protocol):
    """Starts, stops, reboots and terminates instances."""

    def start(self, ids: Sequence[str]) -> object:
        """Start stopped instances."""

    def stop(self, ids: Sequence[str]) -> object:
        """Stop running instances."""

    def reboot(self, ids: Sequence[str]) -> object:
        """Reboot running instances."""

    def terminate(self, ids: Sequence[str]) -> object:
        """Terminate instances."""


class Node(NodeUsers, NodePackages):
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

    # Facts from AWS

    @property
    def id(self) -> str:
        """Id of the instance."""
        return self.instance.id

    @property
    def instance_type(self) -> str:
        """Type of the instance, such as ``g5.xlarge``."""
        return self.instance.type

    @property
    def image_id(self) -> str:
        """Id of its AMI."""
        return self.instance.image_id

    @property
    def ip_address(self) -> str:
        """Public address; empty if it has none."""
        return self.instance.public_ip

    @property
    def private_ip_address(self) -> str:
        """Private address, which the other nodes use."""
        return self.instance.private_ip

    @property
    def dns_name(self) -> str:
        """Name or address by which this machine reaches the node."""
        instance = self.instance
        return (
            instance.public_dns or instance.public_ip or instance.private_dns or instance.private_ip
        )

    @property
    def public_dns_name(self) -> str:
        """Public name; empty if it has none."""
        return self.instance.public_dns

    @property
    def private_dns_name(self) -> str:
        """Private name, which instances of its network can resolve."""
        return self.instance.private_dns

    @property
    def private_dns_name_short(self) -> str:
        """Private name without its domain."""
        return self.instance.private_dns.partition(".")[0]

    @property
    def placement(self) -> str:
        """Availability zone."""
        return self.instance.zone

    @property
    def state(self) -> str:
        """State of the instance at the last listing."""
        return self.instance.state

    @property
    def key_name(self) -> str:
        """Name of its key pair."""
        return self.instance.key_name

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags of the instance."""
        return self.instance.tags

    @property
    def names(self) -> tuple[str, ...]:
        """The node's alias and private address."""
        return tuple(name for name in (self.alias, self.private_ip_address) if name)

    def is_master(self) -> bool:
        """Return whether this is the cluster's master."""
        return is_master(self.alias)

    def is_spot(self) -> bool:
        """Return whether this is a spot instance, which AWS can interrupt."""
        return self.instance.is_spot

    def is_instance_store(self) -> bool:
        """Return whether its root volume is not on EBS: always False."""
        return False

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

    def start(self) -> None:
        """Start the stopped instance."""
        self._power().start([self.id])

    def stop(self) -> None:
        """Stop the instance; it keeps its disks."""
        self.close()
        self._power().stop([self.id])

    def reboot(self) -> None:
        """Reboot the instance."""
        self.close()
        self._power().reboot([self.id])

    def terminate(self) -> None:
        """Terminate the instance."""
        self.close()
        self._power().terminate([self.id])

    def _power(self) -> Power:
        if self._ec2 is None:
            raise ClusterError(f"{self.alias}: this node was opened without access to EC2")
        return self._ec2

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
