"""torchrun, as far as trials use it: command line, variables, sessions, and slow ends."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

_STOP_S = 30.0  # from SIGTERM to SIGKILL, as torchrun's


class ChildFailedError(Exception):
    """A rank failed."""


class SignalException(Exception):
    """A signal arrived."""


class Store(threading.Thread):
    """Holds the values of a sum until all ranks have sent theirs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._held = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]

    def run(self) -> None:
        while True:
            link, _ = self._listening.accept()
            value, n = (link.makefile().readline() or "nan 0").split()
            self._held.append((link, float(value)))
            if len(self._held) == int(n):  # ranks of other hosts take part
                total = sum(value for _, value in self._held)
                for each, _ in self._held:
                    each.sendall(f"{total}\n".encode())
                    each.close()
                self._held = []


def _arguments(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("torchrun")
    for name in ("nproc_per_node", "max_restarts", "nnodes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--standalone", action="store_true", required=True)
    parser.add_argument("--no_python", action="store_true", required=True)
    parser.add_argument("--monitor_interval", type=float, default=5.0)
    parser.add_argument("--log_dir", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args(args)


def main(args: list[str]) -> None:
    """Start the ranks, each in its session, and wait; if one fails, stop the others."""
    given = _arguments(args)
    n = given.nproc_per_node
    store = Store()
    store.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": str(n)}
    ranks = [
        subprocess.Popen(
            given.command,
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            start_new_session=True,
        )
        for rank in range(n)
    ]
    try:
        while None in (statuses := [rank.poll() for rank in ranks]):
            if any(statuses):
                break
            time.sleep(given.monitor_interval)
    finally:
        _stop(ranks)
    if any(rank.returncode for rank in ranks):
        raise ChildFailedError("a rank failed")


def _raise(number: int, frame: object) -> None:
    raise SignalException(f"got signal {number}")


def _stop(ranks: list[subprocess.Popen[bytes]]) -> None:
    running = [rank for rank in ranks if rank.poll() is None]
    for rank in running:
        os.killpg(rank.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while any(rank.poll() is None for rank in running) and time.monotonic() < deadline:
        time.sleep(0.05)
    for rank in running:
        if rank.poll() is None:
            os.killpg(rank.pid, signal.SIGKILL)
            rank.wait()
