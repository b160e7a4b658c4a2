"""A cluster of another queue on the test bed: hosts, a user, a shared home, and commands."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.testbed.cell import REPOSITORY, UID, USER
from tests.testbed.fabric import Fabric, Node


class QueueCluster(ABC):
    """Hosts with a shared directory; the first one is the master.

    Attributes:
        shared: A directory with the same path on all hosts and on this machine.
        home: The home directory of the user, in ``shared``.
    """

    def __init__(self, prefix: str, hosts: int, *, within: str | None = None) -> None:
        """Prepare.

        Args:
            prefix: First part of the name of the shared directory.
            hosts: Number of hosts.
            within: Directory in which to create the shared one. Default: that of temporary files.
        """
        self.names = ["master", *(f"node{number:03d}" for number in range(1, hosts))]
        self.shared = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
        self.shared.chmod(0o755)
        self.home = self.shared / "home"
        self.fabric = self.make_fabric()

    @abstractmethod
    def make_fabric(self) -> Fabric:
        """Return the network."""

    @abstractmethod
    def bring_up(self) -> None:
        """Install and start the daemons on the hosts; wait until every host accepts jobs."""

    def __enter__(self) -> Self:
        """Boot the hosts and start the queue."""
        self.home.mkdir()
        os.chown(self.home, UID, UID)
        self.fabric.__enter__()
        try:
            self.fabric.add(*self.names)
            for node in self.hosts:
                self._add_user(node)
            self.bring_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all hosts and remove all files."""
        self.fabric.__exit__()
        shutil.rmtree(self.shared, ignore_errors=True)

    def _add_user(self, node: Node) -> None:
        passwd = node.inside("/etc/passwd").read_text()
        node.write("/etc/passwd", f"{passwd}{USER}:x:{UID}:{UID}::{self.home}:/bin/bash\n")
        group = node.inside("/etc/group").read_text()
        node.write("/etc/group", f"{group}{USER}:x:{UID}:\n")

    @property
    def master(self) -> Node:
        """The first host."""
        return self.fabric.nodes["master"]

    @property
    def hosts(self) -> list[Node]:
        """All hosts, the master first."""
        return list(self.fabric.nodes.values())

    def kill(self, name: str, node: Node | None = None) -> None:
        """Send SIGKILL to the only process whose command line contains ``name``."""
        os.kill((node or self.master).process(name), signal.SIGKILL)

    # Commands on the master

    def enter(
        self, argv: Sequence[str], *, uid: int = 0, env: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the command line that runs ``argv`` on the master."""
        path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        variables = {"HOME": str(self.home) if uid else "/root", "PATH": path}
        variables |= {"PYTHONPATH": str(REPOSITORY)}
        variables |= {"USER": USER, "LOGNAME": USER} if uid else {}
        return self.master.enter(argv, uid=uid, env={**variables, **(env or {})})

    def run(
        self,
        *argv: str,
        uid: int = 0,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the master, as root or as the user of ``uid``."""
        return subprocess.run(
            self.enter(argv, uid=uid, env=env),
            check=False,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def checked(self, *argv: str, uid: int = 0, stdin: str = "") -> str:
        """Run a command on the master; return its output. Raises RuntimeError if it fails."""
        return checked(self.run(*argv, uid=uid, stdin=stdin))


def checked(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a command; raises RuntimeError if it failed."""
    if done.returncode:
        raise RuntimeError(f"{done.args}: {done.stdout}{done.stderr}")
    return done.stdout
