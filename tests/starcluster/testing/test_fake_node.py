"""The fake node behaves like a real one; tests/on_hosts tests the same on real hosts."""

from __future__ import annotations

import doctest
import time

import pytest

import starcluster.testing
from starcluster.errors import (
    CommandTimeout,
    ConnectionLost,
    NodeError,
    RemoteCommandFailed,
    SshError,
)
from starcluster.testing import ANY, FakeNode


def test_the_example_of_its_documentation_runs() -> None:
    done = doctest.testmod(starcluster.testing)
    assert (done.attempted > 5, done.failed) == (True, 0)


def test_programs_answer_in_turn_and_unknown_ones_are_not_found() -> None:
    ssh = FakeNode().ssh
    ssh.answer("qstat", "job 1", (1, "no daemon"), "")
    assert ssh.execute("qstat -f | head") == ["job 1"]
    with pytest.raises(RemoteCommandFailed, match="no daemon"):
        ssh.checked(["qstat"])
    assert [ssh.run(["qstat"]).stdout for _ in range(2)] == ["", ""]
    assert ssh.get_status("qmod -d all.q") == 127
    ssh.answer(ANY, "anything")
    assert ssh.execute("LC_ALL=C qmod -d all.q") == ["anything"]
    assert ssh.get_last_status() == 0
    assert ssh.ran[:2] == ["qstat -f | head", "qstat"]


def test_a_program_may_be_slow_and_a_connection_may_break(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    ssh = FakeNode("node002").ssh
    ssh.answer("sleep", takes_s=0.05)
    ssh.execute("sleep 1")
    assert slept == [0.05]
    with pytest.raises(CommandTimeout, match=r"node002: sleep 9: .*0\.01 s"):
        ssh.execute("sleep 9", timeout_s=0.01)
    ssh.answer("apt-get", ConnectionLost("node002: lost"), "installed")
    with pytest.raises(ConnectionLost, match="node002: lost"):
        ssh.execute("apt-get install htop")
    assert ssh.execute("apt-get install htop") == ["installed"]


def test_a_node_that_is_not_reachable() -> None:
    node = FakeNode("node001")
    node.ssh.reachable = False
    assert not node.is_ssh_up()
    for use in (lambda: node.ssh.execute("true"), lambda: node.ssh.read_file("/etc/hosts")):
        with pytest.raises(SshError, match="node001: "):
            use()
    node.ssh.reachable = True
    assert node.is_up()


def test_users_hold_their_state() -> None:
    master, node = FakeNode("master"), FakeNode("node001")
    assert master.is_master()
    master.add_user("ann")
    entry = master.getpwnam("ann")
    assert (entry.pw_uid, entry.pw_gid, entry.pw_shell) == (1000, 1000, "/bin/bash")
    master.add_user("bob", uid=1500, shell="zsh")  # noqa: S604 - a login shell
    assert master.getpwnam("bob").pw_gid == 1500
    assert sorted(map(str, master.get_user_map())) == ["ann", "bob", "root"]
    with pytest.raises(NodeError, match=r"bob .*\b1500\b.*\b7\b"):
        master.add_user("bob", uid=7)
    with pytest.raises(KeyError):
        node.getpwnam("ann")
    node.add_user("ann", uid=1000)
    master.enable_passwordless_ssh("ann", [node])
    key = master.ssh.read_file("/home/ann/.ssh/id_ed25519.pub").split()[1]
    assert key in node.ssh.read_file("/home/ann/.ssh/authorized_keys")
    assert "10.0.0.2" in master.ssh.read_file("/home/ann/.ssh/known_hosts")
    assert master.ssh.stat("/home/ann/.ssh").st_uid == 1000


def test_files_hold_their_state() -> None:
    node = FakeNode()
    ssh = node.ssh
    ssh.add_file("/opt/tool/config", "a = 1\nb = 2\n")
    ssh.remove_lines_from_file("/opt/tool/config", "^a")
    assert ssh.execute("cat /opt/tool/config") == ["b = 2"]
    assert ssh.ls("/opt/tool") == ["/opt/tool/config"]
    assert ssh.ls("/opt") == ["/opt/tool"]
    assert "/etc" in ssh.ls("/")
    with pytest.raises(FileNotFoundError):
        ssh.remote_file("/not/there", "w")
    node.set_hostname()
    node.add_to_etc_hosts([FakeNode("master"), node])
    assert "10.0.0.1 master" in ssh.read_file("/etc/hosts")
