"""Messages between a driver and the warm process: JSON, with file descriptors."""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any

CHANGED = "changed"
"""The problem of a warm process whose modules were changed on disk."""

IN_JOB = "in-job"
"""Argument of a warm process whose trials stay in its session and process group."""

CLEAN = "clean"
"""Last line of a keeper: no process of the trial is left."""

_MOST_BYTES = 1 << 20
_MOST_FDS = 8


def send(channel: socket.socket, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one message. Raises OSError if the other process has exited."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([json.dumps(message).encode()], rights)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message and its file descriptors; None if the other process has exited."""
    space = socket.CMSG_SPACE(_MOST_FDS * array.array("i").itemsize)
    content, rights, _, _ = channel.recvmsg(_MOST_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    if not content:
        return None
    fds = array.array("i")
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return json.loads(content), list(fds)
