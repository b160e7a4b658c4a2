"""A cloud of namespaces: the fake EC2 in a separate process, and a network to use it from."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.testbed.fabric import Fabric, Node
from tests.testbed.faults import put
from tests.waiting import text_of, until

T = TypeVar("T")
REPOSITORY = Path(__file__).resolve().parents[2]
REGION, ZONE = "us-east-1", "us-east-1a"
IMAGE = "ami-0dee9ba5e0000001a"  # with Grid Engine, NFS and OpenSSH
PRICES = {"g4dn.xlarge": 0.526, "g4dn.12xlarge": 3.912, "m5.large": 0.096}  # dollars per hour
_ADDRESS = "172.31.0.1/16"  # in EC2's default VPC; no instance gets .1
_PORT = 5000
_CLONE_NEWNET = 0x40000000
# The profile of an image in which this project is installed.
_PROFILE = f"export PATH=$PATH:{Path(sys.prefix) / 'bin'} PYTHONPATH={REPOSITORY}\n"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAFAKE", "AWS_SECRET_ACCESS_KEY": "fake"}


class Cloud:
    """EC2 at ``endpoint``, reachable only in its network; a context manager. Requires root.

    Attributes:
        home: Home directory of its user.
    """

    endpoint = f"http://{_ADDRESS.partition('/')[0]}:{_PORT}"

    def __init__(self, *, boot_s: float = 0.0, root: Path | None = None) -> None:
        """Prepare.

        Args:
            boot_s: An instance is ``pending`` for this time plus the boot time of its node.
            root: File system of the nodes, without this project. Default: this machine's.
        """
        self.boot_s = boot_s
        self.folder = Path(tempfile.mkdtemp(prefix="cloud-"))
        self.home = self.folder / "home"
        binds = dict.fromkeys([REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)])
        self.fabric = Fabric(binds=() if root else _outermost(binds), address=_ADDRESS, root=root)
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Cloud:
        """Start it."""
        for name in ("home", "nodes", "faults"):
            (self.folder / name).mkdir()
        (self.folder / "calls.jsonl").touch()
        self.fabric.__enter__()
        try:
            self._serve()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all instances and remove all files."""
        if self._server is not None:
            self._server.kill()
            self._server.wait(120)
            assert self._server.stdout is not None
            self._server.stdout.close()
        pids = [node.pid for node in self.nodes().values()]
        self.fabric.__exit__()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _serve(self) -> None:
        settings = {
            "folder": str(self.folder),
            "pid": self.fabric.pid,
            "work": str(self.fabric.work),
            "binds": [str(path) for path in self.fabric.binds],
            "net": _ADDRESS,
            "port": _PORT,
            "region": REGION,
            "boot_s": self.boot_s,
            "root": str(self.fabric.root or ""),
            "profile": "" if self.fabric.root else _PROFILE,
        }
        path = self.folder / "settings.json"
        path.write_text(json.dumps(settings))
        argv = ["setpriv", "--pdeathsig", "KILL"]
        argv += ["nsenter", "-t", str(self.fabric.pid), "-n", "--"]
        argv += [sys.executable, "-m", "tests.testbed.fake_ec2", str(path)]
        with (self.folder / "server.log").open("w") as log:
            self._server = subprocess.Popen(
                argv, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._server.stdout is not None
        if self._server.stdout.readline() != "ready\n":
            raise RuntimeError((self.folder / "server.log").read_text())

    # For users of the cloud

    def enter(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs ``argv`` on this machine, in the cloud's network."""
        return ["nsenter", "-t", str(self.fabric.pid), "-n", "--", *argv]

    def environment(self) -> dict[str, str]:
        """Return the environment of a user's command."""
        kept = {name: os.environ[name] for name in ("PATH", "TERM") if name in os.environ}
        mine = {"HOME": str(self.home), "AWS_ENDPOINT_URL": self.endpoint, "LANG": "C.UTF-8"}
        mine |= {"AWS_DEFAULT_REGION": REGION, "PYTHONPATH": str(REPOSITORY)}
        return kept | mine | CREDENTIALS

    def run(
        self, *argv: str, stdin: str = "", timeout_s: float = 400, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on this machine, in the cloud's network."""
        return subprocess.run(
            self.enter(argv),
            check=False,
            env=self.environment() | env,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return ``function(*arguments)``, called in a thread within the cloud's network."""
        results: list[T] = []
        errors: list[BaseException] = []

        def body() -> None:
            try:
                _join_network(self.fabric.pid)
                results.append(function(*arguments))
            except BaseException as error:  # noqa: BLE001 - re-raised below
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    # For tests

    def nodes(self) -> dict[str, Node]:
        """Return the nodes of running instances by instance id."""
        found = {}
        for path in sorted((self.folder / "nodes").glob("i-*")):
            if not (text := text_of(path)):
                continue  # it was terminated since then
            row = json.loads(text)
            found[path.name] = node = Node.__new__(Node)
            node.fabric, node.name, node.ip = self.fabric, row["name"], row["ip"]
            node.pid, node.public_ip = row["pid"], row["public_ip"]
            node._base = self.fabric.work / node.name
        return found

    def calls(self, *actions: str) -> list[dict[str, Any]]:
        """Return the calls so far, in order; if ``actions`` are given, only theirs."""
        whole, _, _ = (self.folder / "calls.jsonl").read_text().rpartition("\n")
        rows = map(json.loads, whole.splitlines())  # the server can be writing the last line
        return [row for row in rows if not actions or row["action"] in actions]

    def fail(self, action: str, code: str, message: str = "", *, times: int = 1) -> None:
        """Make the next calls of ``action`` fail with an error code of EC2."""
        self._fault(action, {"code": code, "message": message or code}, times)

    def rules(self, **rules: Any) -> None:
        """Set the consistency of the following calls; see ``tests.testbed.consistency``."""
        put(self.folder, "consistency", rules)

    def mute(self, *, times: int = 1) -> None:
        """Make the next instances boot without SSH."""
        self._fault("boot", {"how": "no-ssh"}, times)

    def break_gpus(self, number: int) -> None:
        """Give instance ``number`` (from 0) of the next launch GPUs that fail."""
        self._fault(f"gpu-{number}", {"how": "no-cuda"}, 1)

    def _fault(self, action: str, fault: Mapping[str, str], times: int) -> None:
        for number in range(times):
            put(self.folder, f"{action}-{number:03d}", fault)

    def no_capacity(self, *rows: Mapping[str, str]) -> None:
        """Declare types without capacity: rows of ``type``, ``zone``, ``market``; none to reset."""
        put(self.folder, "capacity", rows)


def _outermost(paths: Iterable[Path]) -> list[Path]:
    resolved = [path.resolve() for path in paths]
    return [path for path in resolved if not any(other in path.parents for other in resolved)]


def _join_network(pid: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        if library.setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "cannot enter the network of the cloud")
