"""Plugins of the original that are new here: MPICH, a display, and arguments of ipcluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from starcluster.errors import ConfigError
from starcluster.plugins import ipcluster, xvfb
from starcluster.plugins.ipcluster import IPCluster
from starcluster.plugins.mpich2 import HOSTS, MPICH2Setup
from starcluster.plugins.xvfb import XvfbSetup
from starcluster.testing import FakeNode, FakeShell


def node(name: str, processors: str) -> FakeNode:
    made = FakeNode(name)
    groups = {"mpi": True}

    def alternatives(_: FakeShell, words: list[str], stdin: str) -> tuple[int, str]:
        return (0, "") if groups.get(words[2]) else (2, "no alternatives")

    made.ssh.programs["update-alternatives"] = alternatives
    made.ssh.makedirs("/etc/profile.d")
    made.ssh.answer("sh", processors)
    made.ssh.answer("apt-get")
    return made


def test_mpich_lists_the_nodes_and_is_the_default() -> None:
    master, first, new = node("master", "4"), node("node001", "8"), node("node002", "2")
    plugin = MPICH2Setup()
    plugin.run([master, first], master, "u", "bash", {})
    assert master.ssh.read_file(HOSTS) == "master:4\nnode001:8\n"
    assert any("install mpich libmpich-dev" in line for line in first.ssh.ran)
    assert "update-alternatives --set mpi /usr/bin/mpicc.mpich" in first.ssh.ran
    assert not any("--set mpirun" in line for line in first.ssh.ran)
    assert first.ssh.read_file("/etc/profile.d/mpich2.sh") == f"export HYDRA_HOST_FILE={HOSTS}\n"
    plugin.on_add_node(new, [master, first, new], master, "u", "bash", {})
    assert master.ssh.read_file(HOSTS) == "master:4\nnode001:8\nnode002:2\n"
    plugin.on_remove_node(first, [master, first, new], master, "u", "bash", {})
    assert master.ssh.read_file(HOSTS) == "master:4\nnode002:2\n"


def test_mpich_is_not_installed_twice() -> None:
    master = node("master", "4")
    master.ssh.answer("mpirun.mpich")
    MPICH2Setup().run([master], master, "u", "bash", {})
    assert not any("apt-get" in line for line in master.ssh.ran)


def test_a_display_on_every_node() -> None:
    nodes = [FakeNode("master"), FakeNode("node001")]
    for each in nodes:
        each.ssh.makedirs("/etc/profile.d")
        each.ssh.answer("sh")
        each.ssh.answer("apt-get")
    XvfbSetup(display="3").run(nodes, nodes[0], "u", "bash", {})
    for each in nodes:
        assert any("install xvfb" in line for line in each.ssh.ran)
        assert each.ssh.ran[-1].endswith("xvfb 3 1024x768x24")
        assert each.ssh.read_file("/etc/profile.d/xvfb.sh") == "export DISPLAY=:3\n"


def test_the_display_starts_once(tmp_path: Path) -> None:
    """A program that replaces Xvfb creates the socket and waits."""
    display = str(os.getpid())  # no other run on this machine has it
    socket = Path(f"/tmp/.X11-unix/X{display}")
    fake = tmp_path / "Xvfb"
    code = f"""#!/bin/sh
echo started >>{tmp_path}/count
mkdir -p {socket.parent}
exec -a "Xvfb $1 x" {sys.executable} -c "
import socket, time
socket.socket(socket.AF_UNIX).bind('{socket}')
time.sleep(600)" "$@"
"""
    fake.write_text(code.replace("#!/bin/sh", f"#!{shutil.which('bash')}"))
    fake.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = xvfb._START.replace("/var/log/xvfb.log", f"{tmp_path}/log").replace("=100", "=1000")
    argv = ["sh", "-c", script, "xvfb", display, "8x8x8"]
    try:
        for _ in range(2):
            subprocess.run(argv, env=environment, check=True)
        assert (tmp_path / "count").read_text() == "started\n"
    finally:
        found = subprocess.run(
            ["pgrep", "-f", f"^Xvfb :{display} "], capture_output=True, text=True
        )
        for pid in found.stdout.split():
            os.kill(int(pid), 9)
        socket.unlink(missing_ok=True)


def test_a_display_that_does_not_start_is_said(tmp_path: Path) -> None:
    fake = tmp_path / "Xvfb"
    fake.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    fake.chmod(0o755)
    script = xvfb._START.replace("/var/log/xvfb.log", f"{tmp_path}/log").replace("=100", "=3")
    done = subprocess.run(
        ["sh", "-c", script, "xvfb", "988", "8x8x8"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "no memory\n")


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="'pickel'"):
        IPCluster(packer="pickel")
    with pytest.raises(ConfigError, match="':1'"):
        XvfbSetup(display=":1")


def test_the_directory_of_ipcluster_in_tmp_must_be_no_link(tmp_path: Path) -> None:
    name = f"test-{os.getpid()}"  # instead of the uid, which another user knows
    run, mine = Path(f"/tmp/ipcluster-{name}"), tmp_path / "mine"
    script = f"id() {{ echo {name}; }}\n{ipcluster._COMMON}\ntouch $run/controller.pid"
    mine.mkdir()
    run.symlink_to(mine)
    try:
        done = subprocess.run(["sh", "-c", script, "sh", "env"], check=False, capture_output=True)
        assert (done.returncode, list(mine.iterdir())) == (1, [])
        run.unlink()
        subprocess.run(["sh", "-c", script, "sh", "env"], check=True)
        assert run.stat().st_mode & 0o777 == 0o700
    finally:
        run.unlink() if run.is_symlink() else shutil.rmtree(run)
