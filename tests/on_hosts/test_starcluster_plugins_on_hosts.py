"""The built-in plugins on real hosts; the driver and NFS are stand-ins."""

from __future__ import annotations

import dataclasses
import logging
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from starcluster.config import Plugin
from starcluster.setup import add_nodes, load_plugins, remove_nodes, set_up
from tests.on_hosts.test_starcluster_setup_on_hosts import (
    TEMPLATE,
    queue_states,
    where_jobs_run,
)
from tests.testbed.ssh_hosts import SshHosts

pytestmark = pytest.mark.sge


@pytest.fixture
def hosts() -> Iterator[SshHosts]:
    with SshHosts("master", "node001", gpus=2) as made:
        yield made


def section(setup_class: str, **arguments: str) -> Plugin:
    return Plugin(name=setup_class.split(".")[1], setup_class=setup_class, arguments=arguments)


def test_a_cluster_whose_queue_users_terminal_and_gpus_come_from_plugins(
    hosts: SshHosts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "starcluster")
    template = dataclasses.replace(TEMPLATE, disable_queue=True)
    keys = tmp_path / "keys"
    plugins = load_plugins(
        [
            section("starcluster_plugins.nvidia_tune.NvidiaTune"),
            section("starcluster.plugins.sge.SGEPlugin", slots_per_host="3"),
            section("starcluster_plugins.gpu_sge.GpuSge", gpus="2"),
            section(
                "starcluster.plugins.users.CreateUsers",
                usernames="ann, bob",
                download_keys="True",
                download_keys_dir=str(keys),
            ),
            section("starcluster.plugins.tmux.TmuxControlCenter"),
        ]
    )
    nodes = hosts.nodes(["master", "node001"])
    master, node = nodes
    hosts.add("node002")
    (new,) = hosts.nodes(["node002"])

    def use() -> None:
        for _ in range(2):
            result = set_up(nodes, template, plugins=plugins)
            assert (result.ready, dict(result.failed)) == (("master", "node001"), {})
        assert queue_states(master) == {"master": "", "node001": ""}
        slots = master.ssh.execute("qstat -f | awk '/^all.q/ { print $3 }'")
        assert slots == ["0/0/3", "0/0/3"]
        assert where_jobs_run(master, ["node001"]) == ["node001"]
        assert master.getpwnam("ann").pw_uid == node.getpwnam("ann").pw_uid
        assert node.ssh.execute("su - bob -c 'ssh -o BatchMode=yes master id -un'") == ["bob"]
        windows = "tmux list-windows -t starcluster -F '#{window_name}'"
        for who in ("root", "sgeadmin"):
            listed = master.ssh.execute(f'su - {who} -c "{windows}"')
            assert sorted(listed) == ["master", "node001"]
        result = add_nodes([new], nodes, template, plugins=plugins)
        assert (result.ready, dict(result.failed)) == (("node002",), {})
        assert where_jobs_run(master, ["node002"]) == ["node002"]
        assert new.getpwnam("bob").pw_uid == master.getpwnam("bob").pw_uid
        remove_nodes([new], [*nodes, new], template, plugins=plugins)
        assert sorted(queue_states(master)) == ["master", "node001"]

    hosts.within(use)
    for name in ("ann", "bob"):
        key = keys / f"{name}.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert key.read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    for facts in (r"NVreg_CheckPCIConfigSpace: .*\b580\b", "persistence mode", r"\b2 GPUs"):
        assert re.search(f"node001: {facts}", caplog.text)
