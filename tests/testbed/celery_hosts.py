"""Hosts with workers of Celery on the test bed, and a real Redis on the first one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.testbed.cell import REPOSITORY, UID, USER
from tests.testbed.fabric import PATH, Fabric, Node
from tests.testbed.queue_cluster import QueueCluster
from tests.waiting import until

GPUS = 2
PASSWORD = "pa55word-of-the-hosts"  # noqa: S105 - of a test

# Stores nothing, so that it forgets all messages when it is killed.
_CONFIGURATION = f"""bind 0.0.0.0
port 6379
requirepass {PASSWORD}
save ''
daemonize yes
dir /tmp
"""
_NVIDIA_SMI = f"""#!/bin/sh
for gpu in $(seq 0 {GPUS - 1}); do
  echo "GPU $gpu: stand-in (UUID: GPU-$(hostname)-$gpu)"
done
"""


class CeleryHosts(QueueCluster):
    """A broker on the first host, and a worker for two declared GPUs on every host.

    Args:
        root: Directory of the hosts below which experiments may be. Default: the user's home.
        slots: Number of trials without a GPU at the same time on each host; 0 for those with GPUs.
    """

    def __init__(self, hosts: int = 3, root: Path | None = None, *, slots: int = 0) -> None:
        super().__init__("celery-", hosts)
        self._root, self._slots = root or self.home, slots

    def make_fabric(self) -> Fabric:
        """Return the network of hosts with this machine's file system and Redis."""
        binds = [self.shared, REPOSITORY, Path(sys.base_prefix)]
        return Fabric(binds=binds, packages=("redis-server",))

    def bring_up(self) -> None:
        """Start the broker."""
        for node in self.hosts:
            node.write("/usr/bin/nvidia-smi", _NVIDIA_SMI, 0o755)
        self.master.write("/etc/redis-bed.conf", _CONFIGURATION)
        self.start_broker()

    def start_broker(self) -> None:
        """Start Redis; wait until it answers."""
        self.checked("redis-server", "/etc/redis-bed.conf")
        until(lambda: "PONG" in self._redis("ping"))

    def _redis(self, command: str) -> str:
        return self.run("redis-cli", "-a", PASSWORD, command).stdout

    def kill_broker(self) -> None:
        """Kill Redis as a power failure does."""
        self.kill("redis-server")

    @property
    def url(self) -> str:
        """The URL of the broker with its password."""
        return f"redis://:{PASSWORD}@master:6379/0"

    def name_broker(self) -> None:
        """Write the URL of the broker to the user's configuration."""
        path = self.home / ".config/spearmint/broker.toml"
        path.parent.mkdir(parents=True)
        path.touch(0o600)
        path.write_text(f'url = "{self.url}"\n')
        for made in (path, path.parent, path.parent.parent):
            os.chown(made, UID, UID)

    def start_workers(self) -> None:
        """Start a worker on every host; wait until all GPUs accept trials."""
        self.name_broker()
        for node in self.hosts:
            self.start_worker(node)
        until(lambda: all(self._ready(node) for node in self.hosts), 120, 0.2)

    def _ready(self, node: Node) -> bool:
        path = node.inside("/tmp/worker.log")
        text = path.read_text(errors="replace") if path.exists() else ""
        return text.count(" ready.") >= (self._slots or GPUS)

    def start_worker(self, node: Node) -> None:
        """Start the worker of a host in the background."""
        programs = Path(sys.executable).parent
        env = {"HOME": str(self.home), "PATH": f"{programs}:{PATH}", "USER": USER}
        env |= {"LOGNAME": USER, "PYTHONPATH": str(REPOSITORY)}
        what = f"--gpus none --slots {self._slots}" if self._slots else "--gpus all"
        start = f"exec spearmint worker {what} --root {self._root} >> /tmp/worker.log 2>&1"
        argv = ["sh", "-c", f"setsid sh -c '{start}' < /dev/null &"]
        node.run(*argv, uid=UID, env=env)

    def stop_workers(self) -> None:
        """Send SIGTERM to the workers of the hosts that are up; wait for their end."""
        up = [node for node in self.hosts if node.is_up]
        for node in up:
            node.run("pkill", "-TERM", "-f", "spearmint worker")
        until(lambda: not any(node.processes("spearmint worker") for node in up), 120, 0.2)
