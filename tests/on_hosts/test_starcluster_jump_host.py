"""Nodes behind a jump host, which is a real sshd: logins, copies, a wrong key, a sudden end."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from starcluster.aws.model import Instance
from starcluster.cli import login
from starcluster.errors import ConnectionLost, HostKeyMismatch, SshError
from starcluster.launch.userdata import new_host_key
from starcluster.model import TAG_CLUSTER, TAG_HOST_KEY
from starcluster.node import Shell
from starcluster.node.jump import by_jump_host, problem_of
from starcluster.node.tunnel import Forwarding
from tests.testbed.cloud import IMAGE, Cloud
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = pytest.mark.sge
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class Private:
    """A node that only answers a jump host, and a user whose known_hosts has the jump host."""

    def __init__(self, hosts: SshHosts, home: Path) -> None:
        self.hosts = hosts
        self.node, self.jump_host = hosts.machines["node"], hosts.machines["jump"]
        self.jump = f"root@{self.jump_host.ip}"
        self.known = home / ".ssh" / "known_hosts"
        self.known.parent.mkdir(mode=0o700)
        self.knows(hosts.host_key.public)
        # The real home of root: ssh does not read $HOME.
        (home / "config").write_text(f"Host *\n  UserKnownHostsFile {self.known}\n")
        self.config = home / "config"

    def knows(self, key: str) -> None:
        self.known.write_text(f"{self.jump_host.ip} {key}\n")

    def way(self) -> Forwarding:
        way = by_jump_host(self.jump, self.hosts.key, self.node.ip)
        return replace(way, argv=(way.argv[0], "-F", str(self.config), *way.argv[1:]))

    def shell(self, host_key: str = "") -> Shell:
        return Shell(
            self.node.ip,
            user="root",
            key=self.hosts.key,
            host_key=host_key or self.hosts.host_key.public,
            timeout_s=60,
            name="node",
            tunnel=self.way(),
        )


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    with SshHosts("jump", "node") as made:
        # As in a private subnet: this machine is not answered.
        made.machines["node"].run("ip", "route", "add", "blackhole", "10.77.0.1")
        yield made


@pytest.fixture
def private(hosts: SshHosts, tmp_path: Path) -> Private:
    return Private(hosts, tmp_path)


def test_commands_and_files_pass_through_the_jump_host(private: Private, tmp_path: Path) -> None:
    shell = private.shell()

    def use() -> None:
        direct = private.hosts.shell("node", timeout_s=1)
        with pytest.raises(SshError, match="within 1 s"):
            direct.connect()
        assert shell.execute("hostname") == [private.node.name]
        assert len(shell.checked(["head", "-c", "3000000", "/dev/zero"])) == 3_000_000
        (tmp_path / "sent").write_text("x" * 1_000_000)
        shell.put(tmp_path / "sent", "/srv")
        assert shell.execute("wc -c < /srv/sent") == ["1000000"]
        assert private.jump_host.processes("sshd: root")
        shell.close()
        until(lambda: not private.jump_host.processes("sshd: root"))

    private.hosts.within(use)


def test_a_wrong_host_key_of_the_jump_host_or_of_the_node_is_refused(private: Private) -> None:
    other = new_host_key().public

    def use() -> None:
        with pytest.raises(HostKeyMismatch):
            private.shell(other).execute("touch /tmp/sent")
        for key in (other, ""):
            private.known.write_text(f"{private.jump_host.ip} {key}\n" if key else "")
            with pytest.raises(SshError, match="jump host: Host key verification failed"):
                private.shell().execute("touch /tmp/sent")
        assert not private.node.inside("/tmp/sent").exists()

    private.hosts.within(use)


def test_a_jump_host_that_dies_ends_the_command_and_the_next_one_connects(private: Private) -> None:
    shell = private.shell()

    def end_it() -> None:
        until(lambda: private.node.processes("sleep 302"))
        for pid in private.jump_host.processes("sshd: root"):
            with contextlib.suppress(ProcessLookupError):  # it ended with another one
                os.kill(pid, signal.SIGKILL)

    def use() -> None:
        shell.execute("true")
        killer = threading.Thread(target=end_it)
        killer.start()
        with pytest.raises(ConnectionLost):
            shell.execute("sleep 302")
        killer.join()
        assert shell.execute("echo again") == ["again"]
        shell.close()

    private.hosts.within(use)


def test_the_check_before_the_launch_names_what_ssh_says(
    private: Private, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem() -> str:
        return problem_of(private.jump, private.hosts.key)

    monkeypatch.setattr("starcluster.node.jump._options", _with(private.config))
    assert private.hosts.within(problem) == ""
    private.knows(new_host_key().public)
    assert "Host key verification failed" in private.hosts.within(problem)


def test_the_ssh_of_sshmaster_uses_the_jump_host(private: Private, tmp_path: Path) -> None:
    node = Instance(
        id="i-1",
        state="running",
        type="t",
        image_id="a",
        zone="z",
        private_ip=private.node.ip,
        public_ip="203.0.113.9",
        tags={TAG_CLUSTER: "gpu", TAG_HOST_KEY: private.hosts.host_key.public},
    )
    known = tmp_path / "node"
    known.write_text(f"i-1 {private.hosts.host_key.public}\n")
    argv = login.ssh_argv(
        node,
        user="root",
        key=private.hosts.key,
        known_hosts=known,
        command=("hostname",),
        way=private.way(),
    )
    inside = ["nsenter", "-t", str(private.hosts.fabric.pid), "-n", "--", *argv]
    done = subprocess.run(inside, check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"{private.node.name}\n", done.stderr


def test_a_cluster_starts_and_is_used_through_a_jump_host() -> None:
    with Cloud() as cloud:
        key, known = cloud.home / "mine.pem", cloud.home / "known_hosts"
        config, ssh_config = cloud.home / "config", cloud.home / "ssh_config"
        ssh_config.write_text(f"Host *\n  UserKnownHostsFile {known}\n")
        config.write_text(
            f"[key mine]\nkey_location = {key}\n[cluster bastion]\nkeyname = mine\n"
            f"cluster_size = 1\nnode_instance_type = m5.large\nnode_image_id = {IMAGE}\n"
            "disable_queue = true\n"
        )
        config.chmod(0o600)

        def types(*words: str, status: int = 0) -> str:
            line = shlex.join([sys.executable, "-m", "starcluster", "-c", str(config), *words])
            # ssh reads no config of $HOME, but of the user's entry in /etc/passwd.
            script = f"mount --bind {ssh_config} /etc/ssh/ssh_config && exec {line}"
            done = cloud.run("unshare", "--mount", "sh", "-c", script)
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout + done.stderr

        types("createkey", "mine", "-o", str(key))
        types("start", "-c", "bastion", "bastion")
        (jump,) = cloud.nodes().values()
        template = "[cluster inner]\nextends = bastion\n"
        template += f"ssh_proxy_jump = root@{jump.ip}\n"
        config.write_text(f"{config.read_text()}{template}")
        refused = types("start", "-c", "inner", "inner", status=2)
        assert "ssh_from" in refused
        config.write_text(f"{config.read_text()}ssh_from = {jump.ip}\n")
        refused = types("start", "-c", "inner", "inner", status=2)  # its host key is unknown
        assert "Host key verification failed" in refused
        assert len(cloud.nodes()) == 1
        public = jump.run("cat", "/etc/ssh/ssh_host_ed25519_key.pub").stdout
        known.write_text(f"{jump.ip} {public}")
        types("start", "-c", "inner", "inner")
        seen = types("sshmaster", "inner", "echo from $SSH_CLIENT")
        assert seen.startswith(f"from {jump.ip} ")
        (cloud.home / "sent").write_text("all\n")
        types("put", "inner", str(cloud.home / "sent"), "/srv")
        assert types("sshmaster", "inner", "cat", "/srv/sent") == "all\n"
        types("terminate", "-c", "inner")


def _with(config: Path) -> object:
    from starcluster.node import jump

    original = jump._options

    def options(key: Path) -> list[str]:
        ssh, *rest = original(key)
        return [ssh, "-F", str(config), *rest]

    return options
