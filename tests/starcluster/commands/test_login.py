"""The command line of ssh, and the host key that it verifies."""

from __future__ import annotations

import subprocess
from pathlib import Path
from unittest import mock

import pytest

from starcluster.aws.model import Instance
from starcluster.cli import login
from starcluster.errors import NodeError
from starcluster.model import TAG_CLUSTER, TAG_HOST_KEY

INSTANCE = Instance(
    id="i-1",
    state="running",
    type="g5.xlarge",
    image_id="ami-1",
    zone="z",
    public_ip="203.0.113.1",
    tags={TAG_CLUSTER: "gpu", TAG_HOST_KEY: "ssh-ed25519 AAAA"},
)


def test_the_host_key_is_looked_up_by_instance_and_never_accepted_blindly() -> None:
    argv = login.ssh_argv(INSTANCE, user="root", key=Path("a key"), known_hosts=Path("a b/c"))
    assert argv[:3] == ["ssh", "-i", "a key"]
    assert "StrictHostKeyChecking=yes" in argv
    assert "HostKeyAlias=i-1" in argv
    assert "UserKnownHostsFile='a b/c'" in argv
    assert argv[-4:] == ["-l", "root", "--", "203.0.113.1"]


def test_a_command_runs_in_a_login_shell_just_as_it_was_given() -> None:
    given = ("echo", "'a  b'", "$HOME", '"$0"')
    argv = login.ssh_argv(
        INSTANCE, user="u", key=Path("k"), known_hosts=Path("h"), command=given, flags=["-t"]
    )
    done = subprocess.run(["sh", "-c", argv[-1]], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("a  b /")
    assert argv[3] == "-t"


def test_known_hosts_are_kept_by_cluster_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "KNOWN_HOSTS", tmp_path / "known")
    path = login.remember(INSTANCE)
    assert path.read_text() == "i-1 ssh-ed25519 AAAA\n"
    assert path == tmp_path / "known" / "gpu" / "i-1"
    login.forget("gpu")
    assert not path.exists()
    login.forget("gpu")


def test_an_instance_without_a_known_host_key_is_not_logged_in_to() -> None:
    stranger = Instance(id="i-2", state="running", type="t", image_id="a", zone="z")
    with pytest.raises(NodeError, match=f"i-2: .*{TAG_HOST_KEY}"):
        login.remember(stranger)


def test_ssh_that_gets_no_answer_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(login, "KNOWN_HOSTS", tmp_path)
    monkeypatch.setattr(login, "why_no_answer", lambda *_: ("not open to 192.0.2.9", "allow it"))
    cluster = mock.Mock(template=mock.Mock(key=mock.Mock(location=Path("key"))))
    cluster.way_to.return_value = None
    for status, said in ((1, False), (255, True)):
        caplog.clear()
        done = mock.Mock(returncode=status)
        monkeypatch.setattr(login.subprocess, "run", lambda *_, done=done, **__: done)
        assert login.run_ssh_to(cluster, INSTANCE, "root", ()) == status
        assert ("192.0.2.9" in caplog.text) is said
