"""The plugin celery_workers on real hosts with a real Redis; systemd is a stand-in."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from starcluster.node import Node
from starcluster.setup import LoadedPlugin, add_nodes, remove_nodes, set_up
from starcluster_plugins.celery_workers import CONF, SECRETS, WORKER, CeleryWorkers
from tests.on_hosts.secrecy import Watch, forms
from tests.on_hosts.test_starcluster_setup_on_hosts import TEMPLATE
from tests.testbed import fabric
from tests.testbed.cell import REPOSITORY
from tests.testbed.condor import python_folders
from tests.testbed.image import STAND_INS
from tests.testbed.ssh_hosts import SshHosts
from tests.waiting import until

pytestmark = [pytest.mark.sge, pytest.mark.slow]

PROFILE = f"export PATH=$PATH:{Path(sys.prefix) / 'bin'} PYTHONPATH={REPOSITORY}\n"
ALONE = dataclasses.replace(TEMPLATE, disable_queue=True)
PLUGINS = [LoadedPlugin(name="celery_workers", setup=CeleryWorkers(slots="2"))]
GPU = "GPU-00000000-0000-0000-0000-000000000000"
SEARCH = "spearmint --driver=CELERY --method=SequentialChooser"
WAITS = "/home/sgeadmin/waits"
EXPERIMENT = """
language: PYTHON
name: "waits"
max_retries: 0
variable { name: "X" type: FLOAT min: 0 max: 1 }
"""
# A trial that runs until a file is removed, and says where.
WRAPPER = """
import os, time
from pathlib import Path

def main(job_id, params):
    here = Path(__file__).resolve().parent
    with open(here / f"on.{job_id}", "a") as file:
        print(os.uname().nodename, os.environ["CUDA_VISIBLE_DEVICES"], file=file)
    while (here / "wait").exists():
        time.sleep(0.1)
    return float(params["X"][0])
"""


@pytest.fixture
def hosts() -> Iterator[SshHosts]:
    binds = [REPOSITORY, *python_folders()]
    with SshHosts("master", "node001", gpus=1, binds=binds, profile=PROFILE) as made:
        made.machines["master"].run("rm", "/usr/local/bin/nvidia-smi", "/etc/sge-gpus")
        made.add("node002")
        for machine in made.machines.values():
            machine.write("/usr/local/sbin/systemctl", (STAND_INS / "systemctl").read_text(), 0o755)
        yield made


def test_searches_run_on_workers_of_a_cluster(
    hosts: SshHosts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "starcluster")
    with Watch() as watch:
        hosts.within(sets_up, hosts)
    hosts.within(protects_the_broker, hosts, watch, caplog.text)
    hosts.within(searches, hosts)
    hosts.within(drains_a_node, hosts)
    hosts.reboot("master", "node001")
    hosts.within(sets_up, hosts)


def sets_up(hosts: SshHosts) -> None:
    nodes = hosts.nodes(["master", "node001"])
    for node in nodes:
        node.ssh.connect(wait_s=120)  # after a boot
    result = set_up(nodes, ALONE, plugins=PLUGINS)
    assert (result.ready, dict(result.failed)) == (("master", "node001"), {})
    has_workers(nodes[0])


def has_workers(master: Node) -> None:
    """Wait until the workers answer; a busy one answers some commands too late."""
    expected = {"master": ["", ""], "node001": [GPU]}
    found: list[object] = []

    def is_complete() -> bool:
        found[:] = [workers(master)]
        return found == [expected]

    try:
        until(is_complete, 10, 0.5)
    except TimeoutError as error:
        raise AssertionError(found) from error


def workers(master: Node) -> dict[str, list[str]]:
    """Return the GPUs of the workers by host; empty for those without one."""
    found: dict[str, list[str]] = {}
    for row in json.loads(as_user(master, "spearmint workers --json")):
        found.setdefault(row["host"], []).append(row["gpu"] or "")
    return found


def as_user(master: Node, command: str) -> str:
    return master.ssh.checked(["su", "-", "sgeadmin", "-c", command], timeout_s=300)


def protects_the_broker(hosts: SshHosts, watch: Watch, log: str) -> None:
    master, node = hosts.machines["master"], hosts.machines["node001"]
    password = master.run("cat", SECRETS).stdout.partition("://:")[2].partition("@")[0]
    assert len(password) == 40
    assert not watch.shows(forms(password))
    assert not [form for form in forms(password) if form in log.encode()]
    assert password not in master.run("cat", CONF).stdout
    for path in (SECRETS, CONF, "/home/sgeadmin/.config/spearmint/broker.toml"):
        owner = "sgeadmin" if "home" in path else "root"
        assert master.run("stat", "-c", "%U %a", path).stdout == f"{owner} 600\n"
    assert master.run("ps", "-o", "user=", "-C", "redis-server").stdout == "redis\n"
    listens = master.run("ss", "-Hltn", "sport = :6379").stdout.split()[3::5]
    assert listens == [f"{master.ip}:6379"]
    assert "NOAUTH" in ask(node, master.ip, "", "PING")
    assert "PONG" in ask(node, master.ip, password, "PING")
    for command in ("CONFIG GET dir", "SHUTDOWN", "FLUSHALL", "MODULE LIST"):
        assert "NOPERM" in ask(master, master.ip, password, command)


def ask(machine: fabric.Node, address: str, password: str, command: str) -> str:
    env = {"REDISCLI_AUTH": password} if password else {}
    return machine.run("redis-cli", "-h", address, *command.split(), env=env).stdout


def searches(hosts: SshHosts) -> None:
    (master,) = hosts.nodes(["master"])
    as_user(master, f"cp -r {REPOSITORY}/examples/branin .")
    as_user(master, f"{SEARCH} --gpus=0 --max-finished-jobs=4 branin/config.pb")
    assert complete(master, "branin") == 4


def complete(master: Node, directory: str) -> int:
    rows = json.loads(as_user(master, f"spearmint export --json {directory}"))
    return [row["state"] for row in rows].count("complete")


def drains_a_node(hosts: SshHosts) -> None:
    """Check that a node which is removed first ends its trial: it is neither lost nor repeated."""
    old, new = hosts.nodes(["master", "node001"]), hosts.nodes(["node002"])
    assert add_nodes(new, old, ALONE, plugins=PLUGINS).ready == ("node002",)
    master = hosts.machines["master"]
    for name, text in (("config.pb", EXPERIMENT), ("waits.py", WRAPPER), ("wait", "")):
        master.write(f"{WAITS}/{name}", text)
    master.run("chown", "-R", "sgeadmin:", WAITS)
    command = f"{SEARCH} --gpus=1 --max-concurrent=2 --max-finished-jobs=2 waits"
    with ThreadPoolExecutor() as pool:
        searched = pool.submit(as_user, old[0], command)
        until(lambda: len(runs(master)) == 2 or searched.done())
        removed = pool.submit(remove_nodes, new, [*old, *new], ALONE, plugins=PLUGINS)
        log = hosts.machines["node002"].inside(f"/var/log/{WORKER}.log")
        until(lambda: "finishing trials" in log.read_text() or removed.done())
        master.run("rm", f"{WAITS}/wait")
        removed.result()
        searched.result()
    assert runs(master) == [["node001", GPU], ["node002", GPU]]
    assert complete(old[0], "waits") == 2
    has_workers(old[0])


def runs(master: fabric.Node) -> list[list[str]]:
    """Return host and GPU of each start of a trial."""
    text = master.run("sh", "-c", f"cat {WAITS}/on.*").stdout
    return sorted(line.split() for line in text.splitlines())
