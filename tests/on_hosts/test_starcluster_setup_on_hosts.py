"""The setup on real hosts with sshd, Grid Engine and a shared home; only NFS is a stand-in."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from starcluster.clustersetup import ClusterSetup, for_each
from starcluster.config import Key, NodeType, Plugin, Template
from starcluster.errors import NodeError, PluginError, RemoteCommandFailed, SetupError
from starcluster.node import Node
from starcluster.setup import LoadedPlugin, Step, add_nodes, load_plugins, remove_nodes, set_up
from tests.testbed.ssh_hosts import SshHosts

pytestmark = pytest.mark.sge
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

THIRD_PARTY = Path(__file__).parent / "third_party"
TEMPLATE = Template(
    name="small",
    key=Key(name="key", location=Path("/nowhere")),
    keyname="key",
    cluster_size=3,
    node_instance_type=(NodeType(instance_type="c5.large"),),
)
STATE = """
qconf -sq all.q; qconf -sconf; qconf -ssconf; qconf -shgrp @allhosts; qconf -sel; qconf -sp orte
for host in $(qconf -sel); do qconf -se $host | grep -v load_values | grep '^complex'; done
qstat -f | awk '/^all.q/ { print $1, $6 }'
cat /etc/hosts /etc/exports.d/* /etc/ssh/ssh_known_hosts /root/.ssh/* /home/sgeadmin/.ssh/*
getent passwd; getent group; pgrep sge_qmaster; pgrep sge_execd; cat /etc/fstab
"""


class SeesQueue(ClusterSetup):
    """Records the state of the queue while plugins run; fails on the ``bad`` nodes."""

    def __init__(self, bad: Sequence[str] = ()) -> None:
        super().__init__()
        self.bad, self.seen = tuple(bad), dict[str, str]()

    def run(self, nodes: Any, master: Any, *_: Any) -> None:
        self.seen = queue_states(master)
        for_each(nodes, self._look)

    def on_add_node(self, node: Any, nodes: Any, master: Any, *_: Any) -> None:
        self.seen = queue_states(master)
        for_each([node], self._look)

    def _look(self, node: Node) -> None:
        if node.alias in self.bad:
            raise NodeError("its GPU is broken", alias=node.alias)


def queue_states(master: Node) -> dict[str, str]:
    lines = master.ssh.execute("qstat -f | awk '/^all.q/ { print $1, $6 }'")
    rows = [line.removeprefix("all.q@").split() for line in lines]
    return {row[0]: "".join(row[1:]) for row in rows}


FIND_OWNED = "find /var/lib/gridengine /var/spool/gridengine /run/gridengine -user sgeadmin"


def where_jobs_run(master: Node, hosts: Sequence[str]) -> list[str]:
    """Run a job on each host as the cluster's user; return the host names that they print."""
    found = []
    for host in hosts:
        options = (
            f"-sync y -b y -shell n -terse -j y -o /home/sgeadmin/out-{host} -l hostname={host}"
        )
        line = f"qsub {options} -N probe hostname"
        master.ssh.execute(f"su - sgeadmin -c '{line}'", timeout_s=300)
        found += master.ssh.read_file(f"/home/sgeadmin/out-{host}").split()
        master.ssh.unlink(f"/home/sgeadmin/out-{host}")
    return found


@pytest.fixture(scope="module")
def hosts() -> Iterator[SshHosts]:
    with SshHosts("master", "node001", "node002", gpus=2) as made:
        yield made


def test_three_hosts_become_a_cell_in_which_jobs_run_and_again_changes_nothing(
    hosts: SshHosts,
) -> None:
    nodes = hosts.nodes()
    master = nodes[0]
    old = load_plugins(
        [Plugin(name="old", setup_class="oldstyle.OldStyle", arguments={"motd": "Hi"})],
        THIRD_PARTY,
    )
    looks = SeesQueue()
    plugins = [*old, LoadedPlugin(name="looks", setup=looks)]
    told: list[tuple[str, str]] = []

    def use() -> None:
        result = set_up(nodes, TEMPLATE, plugins=plugins, progress=lambda *row: told.append(row))
        assert result.failed == {}
        assert result.ready == ("master", "node001", "node002")
        assert set(looks.seen) == set(result.ready)
        assert all("d" in state for state in looks.seen.values()), "jobs before the plugins ended"
        assert where_jobs_run(master, result.ready) == list(result.ready)
        gpus = "qsub -sync y -b y -shell n -j y -o gpu -l gpu=1 -N g printenv CUDA_VISIBLE_DEVICES"
        master.ssh.execute(f"su - sgeadmin -c '{gpus}'", timeout_s=300)
        assert master.ssh.read_file("/home/sgeadmin/gpu").startswith("GPU-")
        # The user of jobs could otherwise let root run programs on every host.
        assert master.ssh.execute("qconf -sm") == ["root"]
        for host in result.ready:
            find = f"ssh -o BatchMode=yes {host} {FIND_OWNED}" if host != "master" else FIND_OWNED
            assert master.ssh.execute(find) == []
        with pytest.raises(RemoteCommandFailed):
            master.ssh.execute("su - sgeadmin -c 'qconf -am sgeadmin'")
        # Users and root can log in from host to host without a prompt.
        assert master.ssh.execute("su - sgeadmin -c 'ssh -oBatchMode=yes node002 hostname'") == [
            "node002"
        ]
        assert master.ssh.execute("ssh -o BatchMode=yes node001 hostname") == ["node001"]
        # Scripts for the original name programs by its paths.
        for host in ("", "ssh -o BatchMode=yes node001 "):
            line = ". /opt/sge6/default/common/settings.sh; /opt/sge6/bin/linux-x64/qconf -sel"
            assert "node002" in master.ssh.execute(f"{host}'{line}'" if host else line)
        before = master.ssh.execute(STATE)
        assert set_up(nodes, TEMPLATE, plugins=plugins).failed == {}
        assert master.ssh.execute(STATE) == before

    hosts.within(use)
    assert [what for alias, what in told if alias == "node001"][-1] == Step.READY
    for alias, machine in hosts.machines.items():
        assert machine.inside("/etc/motd.old").read_text() == f"Hi from {alias} ({machine.ip})\n"
    home = hosts.machines["master"].inside("/home")
    assert (home / "sgeadmin" / "nodes").read_text() == "master,node001,node002\n"
    assert (home / "shared" / "report").read_text().count("all.q@") == 3
    assert hosts.machines["node001"].inside("/opt/old/sgeadmin").stat().st_mode & 0o777 == 0o750


def test_a_node_comes_takes_jobs_after_the_plugins_and_goes(hosts: SshHosts) -> None:
    hosts.add("node003")
    nodes = hosts.nodes(["master", "node001", "node002"])
    master = nodes[0]
    (new,) = hosts.nodes(["node003"])
    section = Plugin(name="old", setup_class="oldstyle.OldStyle", arguments={"motd": "Hi"})
    old, looks = load_plugins([section], THIRD_PARTY), SeesQueue()
    plugins = [*old, LoadedPlugin(name="looks", setup=looks)]

    def use() -> None:
        set_up(nodes, TEMPLATE, plugins=old)
        result = add_nodes([new], nodes, TEMPLATE, plugins=plugins)
        assert (result.ready, dict(result.failed)) == (("node003",), {})
        assert "d" in looks.seen["node003"]
        assert looks.seen["node001"] == ""
        assert where_jobs_run(master, ["node003", "node001"]) == ["node003", "node001"]
        everyone = [*nodes, new]
        assert nodes[1].ssh.execute("getent hosts node003")
        remove_nodes([new], everyone, TEMPLATE, plugins=plugins)
        assert sorted(queue_states(master)) == ["master", "node001", "node002"]
        assert "node003" not in " ".join(master.ssh.execute("qconf -sel; qconf -sh; qconf -ss"))
        exported = master.ssh.read_file("/etc/exports.d/starcluster.exports")
        assert new.private_ip_address not in exported
        assert nodes[1].private_ip_address in exported
        assert nodes[1].ssh.execute("getent hosts node003", ignore_exit_status=True) == []
        changes = master.ssh.read_file("/home/shared/changes").split("\n")
        assert changes[-3:-1] == ["added node003", "removed node003"]
        assert where_jobs_run(master, ["node001"]) == ["node001"]

    hosts.within(use)


def test_a_node_that_a_plugin_refuses_takes_no_jobs_until_it_is_well(hosts: SshHosts) -> None:
    nodes = hosts.nodes(["master", "node001", "node002"])
    bad = LoadedPlugin(name="gpus", setup=SeesQueue(bad=["node002"]))

    def use() -> None:
        result = set_up(nodes, TEMPLATE, plugins=[bad])
        assert result.failed == {"node002": "gpus: its GPU is broken"}
        assert result.ready == ("master", "node001")
        assert "d" in queue_states(nodes[0])["node002"]
        assert queue_states(nodes[0])["node001"] == ""
        well = set_up(nodes, TEMPLATE, plugins=[LoadedPlugin(name="gpus", setup=SeesQueue())])
        assert well.failed == {}
        assert queue_states(nodes[0])["node002"] == ""

    hosts.within(use)


def test_a_plugin_that_fails_as_a_whole_leaves_no_node_in_the_queue(hosts: SshHosts) -> None:
    class Broken(ClusterSetup):
        def run(self, nodes: Any, *_: Any) -> None:
            raise ZeroDivisionError("a bug")

    nodes = hosts.nodes(["master", "node001", "node002"])

    def use() -> None:
        with pytest.raises(PluginError, match="plugin broken: ZeroDivisionError: a bug"):
            set_up(nodes, TEMPLATE, plugins=[LoadedPlugin(name="broken", setup=Broken())])
        assert all("d" in state for state in queue_states(nodes[0]).values())
        set_up(nodes, TEMPLATE)
        assert set(queue_states(nodes[0]).values()) == {""}

    hosts.within(use)


def test_a_host_that_is_lost_is_named_and_the_others_work(hosts: SshHosts) -> None:
    nodes = hosts.nodes(["master", "node001", "node002"])
    hosts.machines["node002"].kill()

    def use() -> None:
        nodes[2].ssh.timeout_s = 3
        result = set_up(nodes, TEMPLATE)
        assert list(result.failed) == ["node002"]
        assert "port 22" in result.failed["node002"]
        assert result.ready == ("master", "node001")
        assert where_jobs_run(nodes[0], ["node001"]) == ["node001"]

    hosts.within(use)


def test_without_its_master_there_is_no_cluster(hosts: SshHosts) -> None:
    nodes = hosts.nodes(["master", "node001"])
    nodes[0].ssh.host_key = "ssh-ed25519 AAAAother"
    with pytest.raises(SetupError) as caught:
        hosts.within(set_up, nodes, TEMPLATE)
    assert "master" in caught.value.failed
