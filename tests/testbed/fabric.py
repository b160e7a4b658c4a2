"""Hosts as namespaces: a private network with nodes that can be killed and rebooted.

Everything is in the namespaces of one process, which dies with its parent. No mount, network or
process is left behind, not even after ``kill -9``. Requires root.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.leftovers import keep
from tests.testbed.image import PACKAGES, layer
from tests.waiting import until

_SCRIPTS = Path(__file__).parent
_NET = "10.77.0"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Fabric:
    """A network and its nodes; a context manager."""

    def __init__(
        self,
        *,
        binds: Iterable[Path] = (),
        address: str = f"{_NET}.1/24",
        root: Path | None = None,
        packages: Sequence[str] = PACKAGES,
    ) -> None:
        """Prepare.

        Args:
            binds: Directories of this machine that every node mounts under the same path.
            address: Address of this machine on the network, with its prefix length.
            root: File system of the nodes. Default: this machine's, and ``packages``.
            packages: Debian packages of the nodes. Default: Grid Engine's.
        """
        self.root, self._packages = root, packages
        self.binds = tuple(path.resolve() for path in binds)
        self.address, self.prefix = address, int(address.partition("/")[2])
        self.work = Path(tempfile.mkdtemp(prefix="testbed-"))
        self.nodes: dict[str, Node] = {}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Fabric:
        """Bring up the network."""
        packages = None if self.root else layer(packages=self._packages)
        argv = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork"]
        argv += ["--kill-child=KILL", "--mount-proc", "--propagation", "private"]
        argv += ["bash", str(_SCRIPTS / "fabric-init.sh"), str(self.work), self.address]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the network of the test bed did not start; run as root")
        self.pid = _init_of(self._process.pid, depth=2)
        if packages:
            # Copy, because overlayfs rejects a lower directory that is inside another one.
            self.run("cp", "--archive", str(packages), str(self.work / "packages"))
        return self

    @classmethod
    def of(
        cls, pid: int, work: Path, binds: Iterable[Path], address: str, root: Path | None = None
    ) -> Fabric:
        """Return the fabric that another process started, to boot nodes in it."""
        fabric = cls.__new__(cls)
        fabric.binds, fabric.address, fabric.work = tuple(binds), address, work
        fabric.pid, fabric.prefix = pid, int(address.partition("/")[2])
        fabric.root, fabric.nodes, fabric._process = root, {}, None
        return fabric

    @property
    def lower(self) -> str:
        """The read-only directories of the nodes' file systems, for overlayfs."""
        return str(self.root) if self.root else f"{self.work / 'packages'}:/"

    def __exit__(self, *_: object) -> None:
        """Kill all nodes and remove all files."""
        assert self._process is not None
        self._process.kill()  # this also kills the first process of the namespaces
        self._process.wait(120)
        for node in self.nodes.values():
            node.gone()
        assert self._process.stdout is not None
        self._process.stdout.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def run(self, *argv: str) -> None:
        """Run a command in the network's namespaces, as root of this machine."""
        subprocess.run(self.enter(argv), check=True, timeout=300)

    def enter(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs ``argv`` in the network's namespaces."""
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "--", *argv]

    def add(self, *names: str) -> list[Node]:
        """Boot a node for each of ``names``; all nodes can resolve these names."""
        made = [
            Node(self, name, f"{_NET}.{len(self.nodes) + 10 + offset}")
            for offset, name in enumerate(names)
        ]
        self.nodes |= {node.name: node for node in made}
        for node in self.nodes.values():
            node.write("/etc/hosts", self._hosts())
        for node in made:
            node.boot()
        return made

    def _hosts(self) -> str:
        lines = [f"{node.ip} {node.name}" for node in self.nodes.values()]
        return "\n".join(["127.0.0.1 localhost", *lines, ""])


class Node:
    """One host with its own file system, network, processes and name."""

    def __init__(self, fabric: Fabric, name: str, ip: str) -> None:
        self.fabric, self.name, self.ip, self.public_ip = fabric, name, ip, ""
        self.pid = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._base = fabric.work / name
        upper, work, root = self._base / "upper", self._base / "work", self._base / "root"
        fabric.run("mkdir", "-p", str(upper), str(work), str(root))
        options = f"lowerdir={fabric.lower},upperdir={upper},workdir={work}"
        fabric.run("mount", "-t", "overlay", "node", "-o", options, str(root))
        by_ip = fabric.work / "by-ip"  # the stand-in for NFS finds servers here
        fabric.run("sh", "-c", f"mkdir -p {by_ip} && ln -sfn ../{name} {by_ip}/{ip}")
        self.write("/etc/hostname", f"{name}\n")
        for path in fabric.binds:
            for parent in reversed(path.parents[:-1]):  # users of the node must reach it
                self.inside(parent).mkdir(exist_ok=True)
                self.inside(parent).chmod(self.inside(parent).stat().st_mode | 0o055)
            self.inside(path).mkdir(exist_ok=True)

    def inside(self, path: Path | str) -> Path:
        """Return the path on this machine of ``path`` in the node's file system."""
        return Path(f"/proc/{self.fabric.pid}/root{self._base}/root{path}")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file to the node's file system; it remains after a reboot."""
        target = self.inside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def boot(self) -> None:
        """Start the node. Its files remain from earlier boots, except in /run."""
        argv = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork"]
        argv += ["--propagation", "slave", "--kill-child=KILL"]
        argv += ["bash", str(_SCRIPTS / "node-init.sh")]
        argv += [str(self._base / "root"), self.name, str(self.fabric.work)]
        argv += map(str, self.fabric.binds)
        console = self.inside("/../console.log")
        with console.open("ab") as log:
            self._process = subprocess.Popen(
                self.fabric.enter(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        keep(self._process)  # tests boot hosts of their module again
        self.pid = _init_of(self._process.pid, depth=3)
        inner = _pid_in_fabric(self.pid)
        link = f"node{inner}"  # not the host name: the link of a killed host remains for a moment
        # Use the same hardware address after a reboot, because the other hosts cache it.
        mac = "02:00:" + ":".join(f"{int(part):02x}" for part in self.ip.split("."))
        inner_script = (
            f"ip link set eth0 address {mac}; ip link set lo up; "
            f"ip addr add {self.ip}/{self.fabric.prefix} dev eth0; ip link set eth0 up"
        )
        inner_script += "; ip route add 169.254.169.254 dev eth0"
        inner_script += f"; ip -6 addr add {address_6(self.ip)}/32 dev eth0 nodad"
        if self.public_ip:
            inner_script += f"; ip addr add {self.public_ip}/32 dev eth0"
        script = (
            f"ip link add {link} type veth peer name eth0 netns {inner} && "
            f"ip link set {link} master br0 up && "
            f"nsenter -t {inner} -n sh -c '{inner_script}'"
        )
        self.fabric.run("sh", "-c", script)
        until(lambda: self.run("test", "-e", "/run/up").returncode == 0)

    def kill(self) -> None:
        """Kill all processes of the host; do nothing if it was killed before."""
        if self.is_up:  # otherwise pid is 0, the process group of the tests
            os.kill(self.pid, signal.SIGKILL)
            self.gone()

    def gone(self) -> None:
        """Wait until the processes of the host have ended."""
        if self._process is not None:
            self._process.wait(120)
            until(lambda: not Path(f"/proc/{self.pid}").exists())
        self._process, self.pid = None, 0

    def remove(self) -> None:
        """Kill the host and delete its file system."""
        self.kill()
        base, by_ip = str(self._base), str(self.fabric.work / "by-ip" / self.ip)
        self.fabric.run("sh", "-c", f"umount -l {base}/root; rm -rf {base} {by_ip}")

    @property
    def is_up(self) -> bool:
        """Whether the host was booted and not killed."""
        return bool(self.pid)

    def enter(
        self, argv: Sequence[str], *, uid: int = 0, env: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the command line that runs ``argv`` on the node, with a clean environment."""
        drop = [f"--reuid={uid}", f"--regid={uid}", "--init-groups"] if uid else []
        variables = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **(env or {})}
        command = ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "--"]
        command += ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        return [*command, *(["setpriv", *drop] if drop else []), *argv]

    def run(
        self, *argv: str, uid: int = 0, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the node; return its output and exit status."""
        return subprocess.run(
            self.enter(argv, uid=uid, env=env),
            check=False,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def processes(self, part: str) -> list[int]:
        """Return the pids (on this machine) of processes whose command line contains ``part``."""
        return [pid for pid in self._pids() if part in _command_line(pid)]

    def process(self, part: str) -> int:
        """Return the only such process; wait while a forked child still has the same command."""
        found: list[int] = []

        def is_alone() -> bool:
            found[:] = self.processes(part)
            return len(found) == 1

        with contextlib.suppress(TimeoutError):
            until(is_alone, 20)
        assert len(found) == 1, (part, found)
        return found[0]

    def pid_here(self, pid: int) -> int:
        """Return the pid on this machine of a process of the node, which has ``pid`` there."""
        (found,) = [mine for mine in self._pids() if _pid_of_node(mine) == pid]
        return found

    def _pids(self) -> list[int]:
        mine = str(Path(f"/proc/{self.pid}/ns/pid").readlink())
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and str((entry / "ns/pid").readlink()) == mine:
                    found.append(int(entry.name))
        return sorted(found)

    def remount(self, path: Path, how: str) -> None:
        """Make a shared directory ``ro`` or ``rw`` on this node."""
        done = self.run("mount", "-o", f"remount,bind,{how}", str(path))
        if done.returncode:
            raise RuntimeError(done.stderr)


def address_6(ip: str) -> str:
    """Return the IPv6 address of the node with an IPv4 address."""
    return f"fd00:ec2::{ipaddress.IPv4Address(ip)}"


def _init_of(pid: int, *, depth: int) -> int:
    """Return the descendant of ``pid`` that is process 1 of the namespace at ``depth``."""
    found: list[int] = []

    def has_started() -> bool:
        for below in _descendants(pid):
            numbers = _namespace_pids(below)
            if len(numbers) >= depth and numbers[-1] == 1:
                found.append(below)
        return bool(found)

    until(has_started, step_s=0.005)
    return found[0]


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{one}/task/{one}/children").read_text()
            found += map(int, text.split())
    return found


def _namespace_pids(pid: int) -> list[int]:
    """Return the pids of a process in its namespaces, the outermost first."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return [int(number) for number in line.split()[1:]]
    return []


def _pid_in_fabric(pid: int) -> int:
    """Return the pid of a node's first process in the network's namespace."""
    return _namespace_pids(pid)[-2]


def _pid_of_node(pid: int) -> int:
    """Return the pid of a process in its own namespace; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    return ""
