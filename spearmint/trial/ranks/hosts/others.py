"""The other hosts of a trial, seen from the guard of its first host."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spearmint.layout import TrialFolder
from spearmint.trial.ranks.ends import HostEnds
from spearmint.trial.ranks.hosts.network import address_towards, interface_variables
from spearmint.trial.ranks.hosts.queue_hosts import client_argv, hosts_of_job, shared_variables
from spearmint.trial.ranks.hosts.relay import Meeting
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.records import Records

TOLD = b"spearmint-host "
"""Begin of the line in which an agent tells how its ranks ended."""

STARTED = b"spearmint-host-started\n"
"""The first line of an agent."""

BEAT_S = 1.0
"""Seconds between two lines to an agent."""

_COLLECT_S = 15.0  # longer than an agent needs to end its ranks


class Client:
    """A command of the queue that runs an agent on another host.

    Attributes:
        host: Name of the host.
    """

    def __init__(self, host: str, argv: Sequence[str], task: dict[str, Any]) -> None:
        self.host, self._told, self._n = host, b"", int(task["processes"])
        self._command, self._has_started = Path(argv[0]).name, False
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._input: Any = self.process.stdin
        self._output: Any = self.process.stdout
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.send(json.dumps(task).encode() + b"\n")

    def _read(self) -> None:
        for line in self._output:
            if line.startswith(TOLD):
                self._told = line[len(TOLD) :]
            elif line == STARTED:
                self._has_started = True
            else:
                with contextlib.suppress(OSError):  # a full disk does not hide the last line
                    os.write(1, line)

    def send(self, data: bytes) -> None:
        """Send a line to the agent."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(data)
            self._input.flush()

    def stop(self) -> None:
        """Close the agent's input."""
        with contextlib.suppress(OSError):
            self._input.close()

    def has_failed(self) -> bool:
        """Return whether the command has ended, and not all ranks there have returned."""
        ends = self.ends()
        return ends is not None and (ends.has_failed or len(ends.ends) < self._n)

    def ends(self) -> HostEnds | None:
        """Return how the ranks there ended; None as long as the command runs."""
        status = self.process.poll()
        if status is None:
            return None
        self._reader.join(BEAT_S)
        try:
            return HostEnds.read(json.loads(self._told))
        except (ValueError, TypeError, KeyError):
            reason = f"the ranks on {self.host} ended with the job's processes there"
            if not self._has_started:
                reason = f"{self._command} started no ranks on {self.host}"
            code = f" (exit code {status})" if status else ""  # 0: another part waited for it
            return HostEnds(self.host, failure=f"{reason}{code}; see the output")


class Others:
    """The clients of all other hosts; none of a trial on one host."""

    def __init__(self, clients: Sequence[Client] = (), meeting: Meeting | None = None) -> None:
        self._clients, self._meeting, self._next = clients, meeting, 0.0

    @property
    def pids(self) -> list[int]:
        """The processes of the clients."""
        return [client.process.pid for client in self._clients]

    def are_running(self) -> bool:
        """Return whether any client runs."""
        return any(client.process.poll() is None for client in self._clients)

    def has_failed(self) -> bool:
        """Return whether a rank of a host failed, or the host told nothing."""
        return any(client.has_failed() for client in self._clients)

    def beat(self) -> None:
        """Tell the agents each second that this process lives."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + BEAT_S
            for client in self._clients:
                client.send(b"\n")

    def stop(self) -> None:
        """Ask all agents to end what they started."""
        if self._meeting is not None:
            self._meeting.close()
        for client in self._clients:
            client.stop()

    def collect(self) -> list[HostEnds]:
        """Return how the ranks ended on each host; kill clients that do not end."""
        deadline = time.monotonic() + _COLLECT_S
        for client in self._clients:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.process.wait(max(0.0, deadline - time.monotonic()))
            client.process.kill()
            client.process.wait()
        return [ends for client in self._clients if (ends := client.ends()) is not None]


def start_others(folder: TrialFolder, place: Place, records: Records) -> Others:
    """Start the agents of all other hosts; also set the network interface of the ranks here.

    Raises:
        OSError: The job has another number of hosts, or a command of the queue is missing.
    """
    hosts = hosts_of_job()
    if len(hosts) != place.nodes:
        raise OSError(
            f"the trial needs {place.nodes} hosts, and its job has {len(hosts)}: "
            + " ".join(hosts)
            + " (a parallel environment needs as allocation_rule the slots of a host)"
        )
    address, shared = address_towards(hosts[1]), shared_variables(os.environ)
    for name, value in interface_variables(address).items():  # other hosts find their own
        os.environ.setdefault(name, value)
    secret = secrets.token_bytes(32)
    meeting = Meeting(address, secret, records.port)
    meeting.start()
    task = {
        "folder": str(folder.path),
        "processes": place.processes,
        "nodes": place.nodes,
        "meeting": (address, meeting.port),
        "secret": secret.hex(),
        "environment": shared,
    }
    agent = [sys.executable, "-P", "-m", "spearmint.trial.ranks.hosts.agent"]
    clients = [
        Client(host, client_argv(host, agent), {**task, "node": node, "host": host})
        for node, host in enumerate(hosts)
        if node
    ]
    return Others(clients, meeting)
