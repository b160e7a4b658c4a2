"""The plugin condor on hosts of Debian 13: a pool with GPUs, in which a search runs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from starcluster.node import Node
from starcluster.plugins.condor import PASSWORD, CondorPlugin
from starcluster.setup import LoadedPlugin, add_nodes, remove_nodes, set_up
from tests.on_hosts.test_starcluster_setup_on_hosts import TEMPLATE
from tests.testbed.cell import REPOSITORY
from tests.testbed.condor import copy_python, python_folders
from tests.testbed.roots import queues_root
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = [pytest.mark.htcondor, pytest.mark.slow]

PROFILE = f"export PATH=$PATH:{Path(sys.prefix) / 'bin'} PYTHONPATH={REPOSITORY}\n"
# The repository, and with it Python, can lie below /tmp.
SIMULATED = "GPU_DISCOVERY_EXTRA = -extra -simulate:1,2\nMOUNT_UNDER_SCRATCH =\n"
FORGED = """
MyType = "Machine"
TargetType = "Job"
Name = "evil"
Machine = "evil"
MyAddress = "<10.77.0.10:9618>"
"""
SEARCH = "spearmint --driver=HTCONDOR -l requirements=HAS_GPU --method=SequentialChooser"


@pytest.fixture
def hosts() -> Iterator[SshHosts]:
    binds = [REPOSITORY, *python_folders()]
    with SshHosts(
        "master", "node001", gpus=2, binds=binds, profile=PROFILE, root=queues_root()
    ) as made:
        prepare(made)
        yield made


def prepare(hosts: SshHosts) -> None:
    for machine in hosts.machines.values():
        copy_python(machine)
        machine.write("/etc/condor/config.d/90-bed", SIMULATED)


def test_a_pool_with_gpus_runs_a_search(hosts: SshHosts) -> None:
    template = dataclasses.replace(TEMPLATE, disable_queue=True)
    plugins = [LoadedPlugin(name="condor", setup=CondorPlugin())]
    nodes = hosts.nodes(["master", "node001"])
    master, node = nodes
    hosts.add("node002")
    prepare(hosts)
    (new,) = hosts.nodes(["node002"])

    def use() -> None:
        daemons = set()
        for _ in range(2):
            result = set_up(nodes, template, plugins=plugins)
            assert (result.ready, dict(result.failed)) == (("master", "node001"), {})
            daemons.add(master.ssh.execute("pgrep -x condor_master")[0])
        assert len(daemons) == 1
        assert pool(master, 2) == {"master": (True, 2), "node001": (True, 2)}
        protects_the_pool(master, node)
        as_user(master, f"cp -r {REPOSITORY}/examples/branin .")
        as_user(master, f"{SEARCH} --max-finished-jobs=4 branin")
        rows = json.loads("".join(as_user(master, "spearmint export --json branin")))
        assert [row["state"] for row in rows] == ["complete"] * 4
        result = add_nodes([new], nodes, template, plugins=plugins)
        assert result.ready == ("node002",)
        assert sorted(pool(master, 3)) == ["master", "node001", "node002"]
        remove_nodes([new], [*nodes, new], template, plugins=plugins)
        assert sorted(pool(master, 2)) == ["master", "node001"]

    hosts.within(use)


def pool(master: Node, size: int) -> dict[str, tuple[bool, int]]:
    """Wait until the pool has ``size`` hosts; return HAS_GPU and number of GPUs of each."""
    found: dict[str, tuple[bool, int]] = {}

    def is_complete() -> bool:
        command = "condor_status -compact -json -attributes Machine,HAS_GPU,TotalGPUs"
        text = "".join(master.ssh.execute(command, ignore_exit_status=True))
        found.clear()
        if text.startswith("["):
            rows = json.loads(text)
            found.update({row["Machine"]: (row["HAS_GPU"], row["TotalGPUs"]) for row in rows})
        return len(found) == size

    until(is_complete, 120, 0.5, progress=lambda: str(found))
    return found


def protects_the_pool(master: Node, node: Node) -> None:
    """Check that users can neither join the pool nor stop it, and those of a node not read it."""
    assert master.ssh.execute(f"stat -c '%U %a' {PASSWORD}") == ["root 600"]
    as_user(master, "condor_q")
    assert node.ssh.get_status("su - sgeadmin -c 'condor_q -pool master -name master'") != 0
    for other in (master, node):
        other.ssh.write_file("/tmp/ad", FORGED)
        for command in (
            "condor_advertise -tcp UPDATE_STARTD_AD /tmp/ad",
            "condor_off -daemon startd -name node001",
            "condor_reconfig -name node001",
        ):
            answer = other.ssh.run(["su", "-", "sgeadmin", "-c", f"/usr/sbin/{command}"])
            assert answer.status not in (0, 127), (command, answer)
    assert sorted(pool(master, 2)) == ["master", "node001"]


def as_user(master: Node, command: str) -> list[str]:
    return master.ssh.execute(f'su - sgeadmin -c "{command}"', timeout_s=300)
