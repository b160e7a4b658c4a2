"""The steps of the setup, each on one node. Every step can be rerun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sge_jobs import LOAD_REPORTS, LOST_HOSTS
from starcluster.config import Volume, disks, file_systems, with_devices
from starcluster.config.template import Template
from starcluster.node.hosts_file import known_hosts
from starcluster.node.node import EXPORT_OPTIONS, Node
from starcluster.setup.mountpoint import install_mountpoint
from starcluster.setup.mounts import MOUNT_S, after_users, before_users, mount_lines, needs
from starcluster.setup.packages import replace_packages
from starcluster.setup.scripts import facts, script
from starcluster.setup.tools import TOOLS, install

QUEUE = "all.q"
_PACKAGES_S = 1800.0  # includes cloud-init and the locks of other programs: prepare.sh waits
_STEP_S = 180.0
# For 60 s after a name could not be resolved, such as that of a removed node, the master does not
# look it up again, and refuses a new node with this name.
_REPORT_S = 90
_EXPORTS = "/etc/exports.d/starcluster.exports"
_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """The settings of a template for the setup.

    Attributes:
        queue: Whether to set up Grid Engine.
        packages: Directory or URL of Grid Engine packages; empty for Debian's mirrors.
        metadata: Users that can reach the metadata service: ``root`` or ``all``.
    """

    user: str
    shell: str
    volumes: tuple[Volume, ...] = ()
    queue: bool = True
    packages: str = ""
    metadata: str = "root"

    @classmethod
    def of(cls, template: Template) -> SetupOptions:
        """Return the options of a template."""
        return cls(
            user=template.cluster_user,
            shell=template.cluster_shell,
            volumes=template.volumes,
            queue=not template.disable_queue,
            packages=template.gridengine_packages,
            metadata=template.metadata_access,
        )

    @property
    def shares(self) -> tuple[str, ...]:
        """Directories that the nodes mount from the master."""
        own = {volume.mount_path for volume in file_systems(self.volumes)}
        paths = dict.fromkeys(["/home", *(volume.mount_path for volume in disks(self.volumes))])
        return tuple(path for path in paths if path not in own)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Number of processors and GPUs, as counted on the node."""

    processors: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Facts of the master that the nodes need.

    Attributes:
        number: Uid of the cluster's user.
        root_key: Public key of root on the master.
        shares: Directories that the nodes mount.
    """

    number: str
    root_key: str
    shares: tuple[str, ...]


def prepare(node: Node, everyone: Sequence[Node], master: Node, options: SetupOptions) -> NodeFacts:
    """Set the host name, add the names of the other nodes, and install missing packages."""
    node.set_hostname()
    node.add_to_etc_hosts(everyone)
    know_hosts(node, everyone)
    install(node)
    values = {
        **_common(options),
        "STORAGE": needs(options.volumes),
        "ROLE": "master" if node is master else "node",
        "MASTER": master.alias,
        "TOOLS": TOOLS,
        "METADATA": options.metadata,
    }
    found = _run(node, "apt+prepare+metadata", values, _PACKAGES_S)
    if "crash" in found:
        replace_packages(node, found, options.packages)
    if "s3" in values["STORAGE"]:
        install_mountpoint(node)
    return NodeFacts(processors=int(found["processors"][0]), gpus=int(found["gpus"][0]))


def mount(node: Node, options: SetupOptions) -> None:
    """Mount the file systems of EFS and FSx; those of S3 follow in :func:`join`."""
    volumes = before_users(options.volumes)
    values = {"MOUNTS": mount_lines(volumes)}
    _run(node, "apt+mounts", values, _PACKAGES_S + MOUNT_S * len(volumes))


def know_hosts(node: Node, everyone: Iterable[Node]) -> None:
    """Add the host keys of the other nodes for all users of the node."""
    text = node.ssh.read_file(_KNOWN_HOSTS) if node.ssh.isfile(_KNOWN_HOSTS) else ""
    new = known_hosts(text, {node.names: node.ssh.host_key for node in everyone})
    if new != text:
        node.ssh.write_file(_KNOWN_HOSTS, new)


def start_master(master: Node, nodes: Sequence[Node], options: SetupOptions) -> Base:
    """Create the user and its home, share the directories, start Grid Engine's master."""
    values = {
        **_common(options),
        **_user(options, ""),
        "MASTER": master.alias,
        "VOLUMES": "\n".join(
            f"{volume.volume_id} {volume.device} {volume.partition or '-'} {volume.mount_path}"
            for volume in with_devices(options.volumes)
        ),
        "EXPORTS": exports(nodes, options.shares),
        "CONFIGURATION": configuration(),
        "USER_KEYS": master.ssh.public_key,
    }
    found = _run(master, "user+master", values, _STEP_S)
    return Base(number=found["number"][0], root_key=found["root_key"][0], shares=options.shares)


def share(master: Node, workers: Sequence[Node], options: SetupOptions) -> None:
    """Share the master's directories with ``workers`` only."""
    master.ssh.write_file(_EXPORTS, f"{exports(workers, options.shares)}\n")
    master.ssh.checked(["exportfs", "-ra"], timeout_s=_STEP_S)


def configuration() -> str:
    """Return the settings that must exist before Grid Engine's daemons start."""
    values = {name: value for name, (_, value) in (LOAD_REPORTS | LOST_HOSTS).items()}
    return "\n".join(f"{name} {value}" for name, value in values.items())


def exports(nodes: Iterable[Node], shares: Iterable[str]) -> str:
    """Return the lines of /etc/exports that share ``shares`` with ``nodes``.

    Uses addresses, because exportfs skips names that it cannot resolve and still exits with 0.
    """
    clients = " ".join(f"{node.private_ip_address}({EXPORT_OPTIONS})" for node in nodes)
    return "\n".join(f"{path} {clients}" for path in shares) if clients else ""


def register(master: Node, prepared: Mapping[Node, NodeFacts]) -> None:
    """Register nodes with Grid Engine; new nodes do not accept jobs yet."""
    lines = (f"{node.alias} {has.processors} {has.gpus}" for node, has in prepared.items())
    _run(master, "cell", {"HOSTS": "\n".join(lines)}, _STEP_S)


def join(node: Node, master: Node, base: Base, options: SetupOptions) -> None:
    """Create the cluster's user on the node, mount the shared directories, start its daemon."""
    values = {
        **_common(options),
        **_user(options, base.number),
        "ROLE": "master" if node is master else "node",
        "MASTER": master.alias,
        "SHARES": "\n".join(base.shares),
        "ROOT_KEY": base.root_key,
        "MOUNTS": mount_lines(after_users(options.volumes)),
    }
    _run(node, "user+mounts+join", values, _STEP_S + MOUNT_S * len(after_users(options.volumes)))


def hide_secrets(node: Node, *, limit_s: int) -> None:
    """Move secrets off the node's disk; the node restores them after ``limit_s`` at the latest."""
    _run(node, "image", {"ACTION": "hide", "LIMIT_S": str(limit_s)}, _STEP_S)


def restore_secrets(node: Node) -> None:
    """Restore what :func:`hide_secrets` removed."""
    _run(node, "image", {"ACTION": "restore", "LIMIT_S": ""}, _STEP_S)


def without_report(master: Node, nodes: Iterable[Node]) -> list[str]:
    """Wait until the nodes report to Grid Engine; return the aliases of nodes that do not."""
    names = " ".join(node.alias for node in nodes)
    values = {"HOSTS": names, "SECONDS_LEFT": str(_REPORT_S)}
    limit_s = _STEP_S + 3 * _REPORT_S  # a busy master takes longer for each of its checks
    return _run(master, "reporting", values, limit_s).get("silent", [])


def enable(master: Node, aliases: Iterable[str]) -> None:
    """Enable the queues of nodes."""
    _queue(master, aliases, "-e")


def disable(master: Node, aliases: Iterable[str]) -> None:
    """Disable the queues of nodes; running jobs continue."""
    _queue(master, aliases, "-d")


def forget(master: Node, aliases: Iterable[str]) -> None:
    """Remove nodes from Grid Engine; other nodes rerun their jobs."""
    _run(master, "forget", {"HOSTS": " ".join(aliases)}, _STEP_S)


def _queue(master: Node, aliases: Iterable[str], action: str) -> None:
    names = " ".join(aliases)
    if names:
        _run(master, "queue", {"HOSTS": names, "ACTION": action}, _STEP_S)


def _common(options: SetupOptions) -> dict[str, str]:
    return {"QUEUE": "yes" if options.queue else "no"}


def _user(options: SetupOptions, number: str) -> dict[str, str]:
    return {
        "CLUSTER_USER": options.user,
        "LOGIN_SHELL": options.shell,
        "NUMBER": number,
    }


def _run(
    node: Node, name: str, values: Mapping[str, str], timeout_s: float
) -> dict[str, list[str]]:
    """Run a script on a node; return its facts."""
    argv = ["sh", "-s", name]  # the name identifies the process in ps
    return facts(node.ssh.checked(argv, stdin=script(name, values), timeout_s=timeout_s))
