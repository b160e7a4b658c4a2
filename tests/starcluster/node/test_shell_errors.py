"""The error for a node that does not answer."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from starcluster.errors import SshError
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
