"""Connections to a real sshd: one per node, with a verified host key and timeouts."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from starcluster.errors import (
    CommandTimeout,
    ConnectionLost,
    HostKeyMismatch,
    RemoteCommandFailed,
    SshError,
)
from starcluster.launch.userdata import new_host_key
from starcluster.node import Shell
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = pytest.mark.sge
logging.getLogger("paramiko").setLevel(logging.CRITICAL)
SESSION = "sshd: root@"


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    with SshHosts("one", "two") as made:
        yield made


@pytest.fixture
def shell(hosts: SshHosts) -> Iterator[Shell]:
    made = hosts.shell("one")
    yield made
    made.close()


def test_commands_and_files_of_many_threads_share_one_connection(
    hosts: SshHosts, shell: Shell, tmp_path: Path
) -> None:
    def use() -> list[list[str]]:
        results: list[list[str]] = []

        def both(number: int) -> None:
            results.append(shell.execute(f"echo {number}; echo bad >&2"))
            shell.write_file(f"/tmp/file-{number}", str(number))

        threads = [threading.Thread(target=both, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hosts.machines["one"].process(SESSION)  # raises if there are several
        return results

    assert sorted(hosts.within(use)) == sorted([str(number), "bad"] for number in range(16))
    assert hosts.machines["one"].inside("/tmp/file-7").read_text() == "7"


def test_execute_tells_status_output_and_takes_the_options_of_the_original(
    hosts: SshHosts, shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    def use() -> None:
        with pytest.raises(RemoteCommandFailed, match="exit status 3") as caught:
            shell.execute("echo 'a b'; echo c >&2; exit 3")
        assert caught.value.exit_status == 3
        assert caught.value.output == ("a b", "c")
        assert shell.execute("echo x; false", ignore_exit_status=True) == ["x"]
        assert shell.get_last_status() == 1
        assert shell.execute("exit 4", raise_on_failure=False) == []
        assert shell.get_status("exit 5") == 5
        assert shell.execute("printf 'a\\001b\\n'", only_printable=True) == ["ab"]
        assert shell.execute("cd /tmp\npwd") == ["/tmp"]
        assert shell.which("sh")[0].endswith("/sh")
        assert shell.which("no-such-program") == []
        assert shell.checked(["printf", "%s", "a 'b' $HOME:;"]) == "a 'b' $HOME:;"
        assert shell.checked(["wc", "-c"], stdin=b"x" * 3_000_000).strip() == "3000000"
        assert len(shell.checked(["head", "-c", "5000000", "/dev/zero"])) == 5_000_000

    hosts.within(use)


def test_the_profile_is_read_and_a_detached_command_goes_on(hosts: SshHosts, shell: Shell) -> None:
    hosts.machines["one"].write("/etc/profile.d/mine.sh", "export MINE=yes\n")

    def use() -> None:
        assert shell.execute("echo $MINE") == ["yes"]
        assert shell.execute("echo $MINE", source_profile=False) == [""]
        assert shell.execute_async("mkfifo /tmp/go; read line </tmp/go; touch /tmp/went") == []
        until(lambda: shell.path_exists("/tmp/go"))
        shell.close()
        shell.execute("echo now >/tmp/go")
        until(lambda: shell.path_exists("/tmp/went"))

    hosts.within(use)


@pytest.mark.timeout(280)
def test_what_a_command_leaves_running_with_its_output_open_keeps_nobody_waiting(
    hosts: SshHosts, shell: Shell
) -> None:
    def use() -> None:
        assert shell.execute("sleep 300 & echo started") == ["started"]
        assert shell.execute(
            "(sleep 2; echo late) & sleep 1.5; echo soon; exit 3", raise_on_failure=False
        ) == ["soon", "late"]

    hosts.within(use)


def test_files_and_directories_go_there_and_back(
    hosts: SshHosts, shell: Shell, tmp_path: Path
) -> None:
    tree = tmp_path / "my data"
    (tree / "deep: er").mkdir(parents=True)
    (tree / "deep: er" / "a 'quoted' name").write_text("ä\n")
    (tree / "script.sh").write_text("#!/bin/sh\n")
    (tree / "script.sh").chmod(0o755)

    def use() -> None:
        shell.makedirs("/srv/in side")
        shell.put(tree, "/srv/in side")
        assert shell.isdir("/srv/in side/my data/deep: er")
        assert shell.stat("/srv/in side/my data/script.sh").st_mode & 0o777 == 0o755
        back = tmp_path / "back"
        back.mkdir()
        shell.get(["/srv/in side/my data/deep*", "/srv/in side/my data/script.sh"], back)
        assert (back / "deep: er" / "a 'quoted' name").read_text() == "ä\n"
        assert (back / "script.sh").is_file()
        with pytest.raises(FileNotFoundError):
            shell.get("/srv/none*", back)
        file = shell.remote_file("/srv/lines", "w")
        file.write("one\ntwo\nthree\n")
        file.close()
        assert shell.get_remote_file_lines("/srv/lines", "^t") == ["two\n", "three\n"]
        shell.remove_lines_from_file("/srv/lines", "^two$")
        assert shell.remote_file("/srv/lines", "r").read() == "one\nthree\n"
        shell.chmod(0o600, "/srv/lines")
        shell.chown(7, 8, "/srv/lines")
        found = shell.stat("/srv/lines")
        assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o600, 7, 8)
        shell.unlink("/srv/lines")
        assert not shell.isfile("/srv/lines")
        # Pools of HTCondor in other tests have folders there, too.
        assert [path for path in shell.ls("/srv") if "condor-" not in path] == ["/srv/in side"]

    hosts.within(use)


def test_another_host_key_is_refused_before_anything_is_sent(hosts: SshHosts) -> None:
    other = hosts.shell("one", host_key=new_host_key().public)
    with pytest.raises(HostKeyMismatch):
        hosts.within(other.execute, "touch /tmp/sent")
    kind = hosts.shell("one", host_key="ecdsa-sha2-nistp256 AAAA")
    with pytest.raises(HostKeyMismatch):
        hosts.within(kind.connect, wait_s=30)
    assert not hosts.machines["one"].inside("/tmp/sent").exists()


def test_a_key_that_the_node_does_not_know_is_named(hosts: SshHosts, tmp_path: Path) -> None:
    private = tmp_path / "stranger"
    private.write_text(new_host_key().private)
    stranger = hosts.shell("one")
    stranger.key = private
    with pytest.raises(SshError, match=str(private)):
        hosts.within(stranger.connect)


def test_a_session_that_is_killed_is_an_error_and_the_next_command_connects_again(
    hosts: SshHosts, shell: Shell
) -> None:
    machine = hosts.machines["one"]

    def kill_while_it_runs(session: int) -> None:
        until(lambda: machine.processes("sleep 301"))
        os.kill(session, signal.SIGKILL)

    def use() -> None:
        shell.execute("true")
        session = machine.process(SESSION)  # waits until sessions of earlier tests end
        killer = threading.Thread(target=kill_while_it_runs, args=(session,))
        killer.start()
        with pytest.raises(ConnectionLost):
            shell.execute("sleep 301")
        killer.join()
        assert shell.execute("echo again") == ["again"]

    hosts.within(use)


@pytest.mark.timeout(280)
def test_a_node_that_falls_silent_is_noticed(hosts: SshHosts) -> None:
    quick = hosts.shell("two", timeout_s=5)
    machine = hosts.machines["two"]

    def use() -> None:
        quick.connect(wait_s=120)
        try:
            with pytest.raises(ConnectionLost):
                quick.execute("ip route add blackhole 10.77.0.1; sleep 300")
        finally:
            machine.run("ip", "route", "del", "blackhole", "10.77.0.1")

    hosts.within(use)


def test_a_node_behind_a_closed_group_is_explained_but_not_a_refusal(hosts: SshHosts) -> None:
    """A security group drops packets; a host without sshd refuses them."""
    machine = hosts.machines["two"]
    asked: list[str] = []

    def why() -> tuple[str, str]:
        asked.append("two")
        return "not open to 192.0.2.9", "starcluster allow gpu"

    shell = Shell(
        machine.ip,
        user="root",
        key=hosts.key,
        host_key=hosts.host_key.public,
        timeout_s=1,
        no_answer=why,
    )

    def use() -> None:
        shell.port = 2223
        with pytest.raises(SshError, match="refused"):
            shell.connect()
        assert not asked
        shell.port = 22
        machine.run("ip", "route", "add", "blackhole", "10.77.0.1")
        try:
            with pytest.raises(SshError, match=r"not open to 192\.0\.2\.9") as caught:
                shell.connect(wait_s=2)
        finally:
            machine.run("ip", "route", "del", "blackhole", "10.77.0.1")
        assert caught.value.fix == "starcluster allow gpu"
        assert asked == ["two"]  # once, not at each attempt

    hosts.within(use)


def test_a_command_that_does_not_end_and_a_port_that_says_nothing(
    hosts: SshHosts, shell: Shell
) -> None:
    machine = hosts.machines["one"]
    listen = "import socket; s = socket.create_server(('', 2222)); s.listen(); input()"
    machine.run("sh", "-c", f'(sleep 100 | /usr/bin/python3 -c "{listen}") >/dev/null 2>&1 &')
    mute = hosts.shell("one", timeout_s=1)
    mute.port = 2222
    nobody = hosts.shell("one", timeout_s=1)
    nobody.port = 2223

    def use() -> None:
        with pytest.raises(CommandTimeout, match=r"sleep 60: .*0\.5 s"):
            shell.execute("sleep 60", timeout_s=0.5)
        for other, limit_s in ((mute, 3), (nobody, 1)):
            with pytest.raises(SshError, match=rf"port {other.port}: .*\b{limit_s} s"):
                other.connect(wait_s=1)

    hosts.within(use)


def test_a_busy_node_answers_late(hosts: SshHosts) -> None:
    """The kernel accepts the connection, but sshd has no time for the handshake."""
    late = hosts.shell("two", timeout_s=10)
    (sshd,) = hosts.machines["two"].processes("sshd: /usr/sbin/sshd")
    os.kill(sshd, signal.SIGSTOP)
    busy = threading.Timer(late.timeout_s + 1, os.kill, (sshd, signal.SIGCONT))
    busy.start()
    try:
        assert hosts.within(late.execute, "echo late") == ["late"]
    finally:
        busy.join()
        late.close()


def test_neither_keys_nor_passwords_are_logged(
    hosts: SshHosts, shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "starcluster")

    def use() -> None:
        shell.execute("echo AKIAABCDEFGHIJKLMNOP; true --password=hunter2")
        shell.checked(["cat"], stdin="hunter3")

    hosts.within(use)
    assert "hunter" not in caplog.text
    assert "AKIAABCD" not in caplog.text
    assert "true --password=***" in caplog.text
