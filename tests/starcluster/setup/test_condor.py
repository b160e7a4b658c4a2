"""The plugin condor: packages, settings and the password of the pool."""

from __future__ import annotations

import pytest

from starcluster.errors import SetupError
from starcluster.plugins.condor import CONFIG, PASSWORD, CondorPlugin
from starcluster.testing import FakeNode, FakeShell


def node(name: str, package: str = "condor") -> FakeNode:
    made = FakeNode(name)
    running: list[str] = []

    def start(shell: FakeShell, words: list[str], stdin: str) -> str:
        running.append("condor_master")
        return ""

    def show(shell: FakeShell, words: list[str], stdin: str) -> tuple[int, str]:
        return (0, "Filename: pool/x.deb\n") if words[-1] == package else (100, "E: none\n")

    made.ssh.programs |= {"sh": start, "apt-cache": show}
    made.ssh.programs["pgrep"] = lambda *_: "7\n" if running else (1, "")
    made.ssh.answer("apt-get")
    made.ssh.makedirs("/etc/condor/config.d")
    return made


def test_a_pool_of_a_master_and_nodes() -> None:
    master, first, new = node("master"), node("node001", "htcondor"), node("node002")
    plugin = CondorPlugin()
    plugin.run([master, first], master, "u", "bash", {})
    assert any("install htcondor" in line for line in first.ssh.ran)
    assert any("install condor" in line for line in master.ssh.ran)
    assert "NEGOTIATOR, SCHEDD, STARTD\n" in master.ssh.read_file(CONFIG)
    settings = first.ssh.read_file(CONFIG)
    assert "CONDOR_HOST = master\n" in settings
    assert "DAEMON_LIST = MASTER, STARTD\n" in settings
    assert f"NETWORK_INTERFACE = {first.private_ip_address}\n" in settings
    plugin.on_add_node(new, [master, first, new], master, "u", "bash", {})
    passwords = {each.ssh.read_file(PASSWORD) for each in (master, first, new)}
    assert len(passwords) == 1
    secret = passwords.pop().strip()
    assert len(secret) == 40
    for each in (master, first, new):
        assert each.ssh.stat(PASSWORD).mode == 0o600
        assert not any(secret in line for line in each.ssh.ran)


def test_a_second_run_changes_nothing() -> None:
    master = node("master")
    for _ in range(2):
        CondorPlugin("false").run([master], master, "u", "bash", {})
    assert sum(line.startswith("sh ") for line in master.ssh.ran) == 2  # it stops and starts once
    assert "STARTD\n" not in master.ssh.read_file(CONFIG)


def test_daemons_end_before_their_settings_change() -> None:
    master = node("master")
    seen: list[tuple[str, bool]] = []

    def watched(shell: FakeShell, words: list[str], stdin: str) -> str:
        seen.append(("install -d" in words[-1], shell.path_exists(CONFIG)))
        return ""

    master.ssh.programs["sh"] = watched
    CondorPlugin().run([master], master, "u", "bash", {})
    assert seen == [(False, False), (True, True)]


def test_nodes_with_gpus_say_so_and_a_removed_node_lets_its_jobs_go() -> None:
    master, first = node("master"), node("node001")
    first.ssh.answer("nvidia-smi", "GPU 0: Tesla T4 (UUID: GPU-0)\n")
    plugin = CondorPlugin()
    plugin.run([master, first], master, "u", "bash", {})
    assert "HAS_GPU = True\n" in first.ssh.read_file(CONFIG)
    assert "use FEATURE : GPUs\n" in first.ssh.read_file(CONFIG)
    assert "HAS_GPU = False\n" in master.ssh.read_file(CONFIG)
    assert "use FEATURE : GPUs\n" not in master.ssh.read_file(CONFIG)
    plugin.on_remove_node(first, [master, first], master, "u", "bash", {})
    assert "condor_off -graceful" in first.ssh.ran[-1]


def test_a_distribution_without_the_package_is_named() -> None:
    master = node("master", "other")
    with pytest.raises(Exception, match=r"HTCondor|Debian 13"):
        CondorPlugin().run([master], master, "u", "bash", {})
    old = node("node001", "other")
    with pytest.raises(SetupError, match="node001"):
        CondorPlugin().run([node("master"), old], node("master"), "u", "bash", {})
