"""Reach a node through a process of this machine that forwards its input and output to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_END_S = 2.0
TUNNELS = threading.BoundedSemaphore(8)
"""Tunnels that open at once: sshd refuses more than 10 logins (MaxStartups), AWS throttles."""
RETRY_S = 2.0
"""Pause between attempts, each of which starts a process."""


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """How to reach one node.

    Attributes:
        argv: The command; everybody on this machine can read it.
        through: What forwards, in messages.
        fix: What to check if it does not.
        final: Words in its errors after which another attempt is useless.
        environment: Return the whole environment of the command; None for that of this process.
        check: Raise SshError if the node cannot be reached yet, or another error if never.
    """

    argv: tuple[str, ...]
    through: str
    fix: str
    final: tuple[str, ...] = ()
    environment: Callable[[], Mapping[str, str] | None] = field(default=_nothing, repr=False)
    check: Callable[[], None] = field(default=_nothing, repr=False)

    def is_final(self, error: str) -> bool:
        """Return whether another attempt after an error is useless."""
        return any(words in error for words in self.final)


class Tunnel:
    """A process that forwards to a node, and the socket to it.

    Attributes:
        socket: The connection; closing it ends the process.
    """

    def __init__(self, way: Forwarding) -> None:
        environment = way.environment()
        self.socket, theirs = socket.socketpair()
        with theirs:
            # Its own session, so that Ctrl-C does not end the connection before the clean-up.
            self._process = subprocess.Popen(
                way.argv,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )

    def close(self) -> str:
        """End the process and its children; return its last line on standard error."""
        self.socket.close()
        for ending in (signal.SIGTERM, signal.SIGKILL):
            try:
                _, errors = self._process.communicate(timeout=_END_S)
                break
            except subprocess.TimeoutExpired:
                self._signal(ending)
        else:
            _, errors = self._process.communicate()
        return last_line(errors.decode(errors="replace"))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def last_line(text: str) -> str:
    """Return the last line that is not empty, without a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "no message"
