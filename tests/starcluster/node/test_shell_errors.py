"""The error for a node that does not answer."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import paramiko
import pytest

from starcluster.errors import SshError
from starcluster.node import shell as shell_module
from starcluster.node.shell import Shell


@pytest.mark.parametrize(("host", "private"), [("10.0.0.5", True), ("54.214.180.41", False)])
def test_a_node_without_a_public_address_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, host: str, private: bool
) -> None:
    def nobody(*_: Any) -> Any:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", nobody)
    shell = Shell(host, user="root", key=Path("key"), host_key="ssh-ed25519 AAAA", timeout_s=1)
    with pytest.raises(SshError, match=rf"{host} port 22: .*\b1 s: timed out") as caught:
        shell.connect()
    assert ("public_ips" in caught.value.what) is private


class Refusing:
    """A transport whose sshd refuses some sessions first."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals

    def open_session(self, timeout: float) -> str:
        if self.left:
            self.left -= 1
            raise paramiko.ChannelException(2, "Connect failed")
        return "session"


def test_a_session_that_sshd_refuses_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """sshd counts a session that was closed until it has seen its end."""
    monkeypatch.setattr(shell_module, "_STEP_S", 0.0)
    shell = Shell(
        "10.0.0.5", user="root", key=Path("key"), host_key="ssh-ed25519 AAAA", timeout_s=1
    )
    transport = Refusing(2)
    monkeypatch.setattr(shell, "_connected", lambda: transport)
    assert shell._session() == "session"
    shell.timeout_s, transport.left = 0, 1 << 30
    with pytest.raises(paramiko.ChannelException):
        shell._session()


class Closing:
    """A channel that records what is sent, and whether sshd's close could come in between."""

    def __init__(self, *, closed: bool) -> None:
        self.closed, self.lock, self.transport = closed, threading.Lock(), self
        self.sent: list[tuple[str, bool]] = []

    def _send_eof(self) -> str:
        return "eof"

    def _send_user_message(self, message: str) -> None:
        self.sent.append((message, self.lock.locked()))


def test_the_end_of_input_is_never_sent_behind_a_close() -> None:
    """sshd ends the connection of all threads otherwise."""
    gone, here = Closing(closed=True), Closing(closed=False)
    shell_module._end_input(gone)
    shell_module._end_input(here)
    assert (gone.sent, here.sent) == ([], [("eof", True)])
