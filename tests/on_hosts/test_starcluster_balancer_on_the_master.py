"""A balancer that is installed on the master of a real cluster, while nothing runs elsewhere."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from starcluster.balance.on_master.unit import UNIT
from starcluster.balance.turn import ON_MASTER
from starcluster.cluster import find
from starmint.bill import read_bill
from tests.on_hosts.live_cluster import NAME, Bench
from tests.testbed.cloud import CREDENTIALS, Cloud
from tests.testbed.fabric import Node
from tests.testbed.image import STAND_INS
from tests.waiting import until

pytestmark = [pytest.mark.sge, pytest.mark.slow]
FAST = ("--interval=5", "--job_wait_time=0", "--stabilization_time=0", "--kill_after=0")
SYSTEMCTL = "/usr/local/sbin/systemctl"
LIMIT_S = 120
SLOW_S = 20


@pytest.fixture
def bench() -> Iterator[Bench]:
    before = dict(os.environ)
    with Cloud() as cloud:
        yield cloud.call(Bench, cloud)
    os.environ.clear()
    os.environ.update(before)


def started(bench: Bench, size: int) -> Node:
    bench.start(bench.lifecycle(), cluster_size=str(size))
    master = bench.node("master")
    master.write(SYSTEMCTL, (STAND_INS / "systemctl").read_text(), 0o755)
    return master


def names(bench: Bench) -> list[str]:
    cluster = find(bench.ec2, bench.config, NAME)
    return [each.alias for each in cluster.instances if each.state != "terminated"]


def facts(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench.types("status", NAME, "--json"))
    return found


def last(bench: Bench) -> dict[str, Any]:
    """Return the last decision; empty before the first."""
    return (facts(bench)["decisions"] or [{}])[-1]


def qsub(master: Node, *options: str) -> None:
    words = " ".join(("qsub -cwd -j y -o /dev/null -b y", *options))
    done = master.run("su", "-", "sgeadmin", "-c", words)
    assert done.returncode == 0, done.stdout + done.stderr


def qdel(master: Node) -> None:
    master.run("su", "-", "sgeadmin", "-c", "qdel -u sgeadmin")


def states(bench: Bench) -> set[str]:
    return {each.state for each in find(bench.ec2, bench.config, NAME).instances}


def bench_master(bench: Bench) -> str:
    return find(bench.ec2, bench.config, NAME).master.id


def waits(master: Node, happens: Callable[[], object]) -> None:
    """Wait while the log of the balancer grows; a failure has its end."""
    log = master.inside(f"/var/log/{UNIT}.log")

    def said() -> str:
        return log.read_text() if log.exists() else "no log"

    try:
        until(happens, LIMIT_S, 1, progress=said)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; the balancer said:\n{said()[-4000:]}") from error


def knows_the_bill(bench: Bench, master: Node) -> None:
    """Check that the balancer, with its role, has told all users of the master what nodes cost."""
    path = master.inside("/var/lib/starmint/bill.json")
    assert path.stat().st_mode & 0o777 == 0o644
    runs = {run.alias: run for run in read_bill(path).runs}
    assert runs["master"].runs
    assert runs["node001"].end is not None
    found = json.loads(bench.types("cost", "--json", NAME))
    assert [node["node"] for node in found["nodes"]] == ["master", "node001"]
    assert found["nodes"][1]["dollars"] > 0
    assert not [note for note in found["notes"] if "master was not read" in note]


def test_it_grows_and_shrinks_the_cluster_with_its_own_role(bench: Bench) -> None:
    def body() -> None:
        master = started(bench, 1)
        told = bench.types("balance", "--install", "-m", "2", "--budget", "50", *FAST, NAME)
        assert f"starcluster balance --uninstall {NAME}" in told
        refused = bench.types("balance", "-m", "2", NAME, status=1)
        assert f"starcluster status {NAME}" in refused
        config = master.inside("/opt/starcluster-balancer/current/config").read_text()
        assert CREDENTIALS["AWS_ACCESS_KEY_ID"] not in config
        assert "mine.pem" not in config
        qsub(master, "-t", "1-4", "sleep", "100000")
        waits(master, lambda: len(names(bench)) == 2)
        # kill -9 while the node boots: the next process finishes it, and adds no other one.
        os.kill(master.process("current/starcluster -c"), signal.SIGKILL)
        waits(master, lambda: last(bench).get("running_jobs") == 4)
        launches = [row for row in bench.cloud.calls("RunInstances") if not row["error"]]
        assert len(launches) == 2
        shown = facts(bench)
        assert "finish: add node001" in [each["action"] for each in shown["decisions"]]
        assert shown["budget"] == 50
        assert (shown["balancer"]["state"], shown["balancer"]["where"]) == ("active", "master")
        assert shown["balancer"]["checked_by"] == ON_MASTER
        qdel(master)
        waits(master, lambda: names(bench) == ["master"])
        waits(master, lambda: last(bench).get("action") == "none")
        assert "remove node001" in [each["action"] for each in facts(bench)["decisions"]]
        knows_the_bill(bench, master)
        removed = bench.types("balance", "--uninstall", NAME)
        assert "role" in removed
        assert facts(bench)["balancer"]["where"] == "elsewhere"
        assert not master.inside("/opt/starcluster-balancer").exists()
        assert bench.ec2.association(bench_master(bench)) is None

    bench.cloud.call(body)


def test_it_keeps_the_budget_and_stops_the_idle_cluster_also_after_a_restart(bench: Bench) -> None:
    def body() -> None:
        master = started(bench, 1)
        options = ("-m", "3", "--budget", "0.6", *FAST)
        bench.types("balance", "--install", *options, NAME)
        qsub(master, "-t", "1-4", "sleep", "100000")
        waits(master, lambda: "rest of the budget" in last(bench).get("why", ""))
        assert names(bench) == ["master"]
        assert facts(bench)["decisions"][-1]["action"] == "none"
        qdel(master)
        # A second --install replaces the options. The cluster stops with its master.
        bench.types("balance", "--install", "-m", "3", "--idle-stop", "0.1", *FAST, NAME)
        waits(master, lambda: states(bench) == {"stopped"})
        assert facts(bench)["problem"]
        log = master.inside(f"/var/log/{UNIT}.log")
        before = len(log.read_text())
        # Each setup lasts longer than idle-stop. The balancer, which systemd starts at the boot,
        # waits for its end.
        master.write("/usr/local/bin/nproc", f"#!/bin/sh\nsleep {SLOW_S}\necho 2\n", 0o755)
        bench.types("start", "-x", NAME)
        waits(master, lambda: states(bench) == {"stopped"})
        assert "sets up nodes" in log.read_text()[before:]
        told = bench.types("terminate", "-c", NAME)
        assert "role starcluster-us-east-1-faulty" in told
        assert not list(bench.ec2.pages("iam", "ListRoles", "Roles", PathPrefix="/starcluster/"))
        assert bench.nothing_left()

    bench.cloud.call(body)
