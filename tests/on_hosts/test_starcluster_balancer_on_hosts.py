"""A real cluster that grows and shrinks with its queue."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from starcluster.balance import Balancer, Limits, QueueSnapshot, Stats, decide
from starcluster.balance.actions import drain
from starcluster.balance.observation.observe import Observer
from starcluster.cluster import Cluster, find
from tests.on_hosts.live_cluster import NAME, Bench
from tests.testbed.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.sge, pytest.mark.slow]


@pytest.fixture
def bench() -> Iterator[Bench]:
    before = dict(os.environ)
    with Cloud() as cloud:
        yield cloud.call(Bench, cloud)
    os.environ.clear()
    os.environ.update(before)
    time.tzset()


def now(bench: Bench) -> Cluster:
    return find(bench.ec2, bench.config, NAME)


def taken(bench: Bench) -> QueueSnapshot:
    return Observer(bench.lifecycle(), Limits(max_nodes=6)).take_snapshot(now(bench))


def names(bench: Bench) -> list[str]:
    return [instance.alias for instance in now(bench).instances]


def submit(bench: Bench, *options: str) -> None:
    command = f"echo sleep 3000 | qsub -cwd -j y -o /dev/null -N s {' '.join(options)}"
    now(bench).master.ssh.execute(f"su - sgeadmin -c '{command}'")


def test_it_grows_while_jobs_wait_and_shrinks_when_none_is_left(bench: Bench) -> None:
    def body() -> None:
        os.environ["TZ"] = "XST-9"  # another time zone than the cluster's
        time.tzset()
        bench.start(bench.lifecycle(), cluster_size="2")
        submit(bench, "-h")
        submit(bench, "-t 1-9")
        until(lambda: taken(bench).running_jobs == 4, 60, 0.2)  # 2 slots on each node
        snapshot = taken(bench)
        assert len(snapshot.waiting_s) == 5
        assert all(-5 < seconds < 1800 for seconds in snapshot.waiting_s)
        assert (snapshot.free_slots, snapshot.busy) == (0, frozenset({"master", "node001"}))
        said: list[str] = []
        limits = Limits(max_nodes=3, job_wait_s=-1, kill_after_s=0, stabilization_s=0)
        balancer = Balancer(bench.lifecycle(), limits, say=said.append)
        assert not balancer.run_once(now(bench))
        assert names(bench) == ["master", "node001", "node002"]
        assert not balancer.run_once(now(bench))
        assert names(bench) == ["master", "node001", "node002"]
        assert said[-1].startswith("3 nodes")
        drain(now(bench), ("node001",))  # as after an interruption notice
        until(lambda: "node001" not in taken(bench).busy, 30, 0.2)
        assert taken(bench).running_jobs + len(taken(bench).waiting_s) == 9
        now(bench).master.ssh.execute("qdel -u sgeadmin")
        until(lambda: not taken(bench).running_jobs, 30, 0.2)
        balancer.stats = Stats(lookback=timedelta(hours=1))
        assert not balancer.run_once(now(bench))
        assert names(bench) == ["master"]
        (row,) = balancer.stats.rows
        assert (row.nodes, row.remove, row.running_jobs) == (3, 2, 0)
        assert row.jobs_ended >= 4
        assert 0 < row.mean_run_s < 1800
        ending = Limits(max_nodes=3, kill_after_s=0, stabilization_s=0, kill_cluster=True)
        assert Balancer(bench.lifecycle(), ending, say=said.append).run_once(now(bench))
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_it_grows_while_jobs_wait_for_gpus_and_slots_are_free(bench: Bench) -> None:
    def body() -> None:
        bench.start(bench.lifecycle(), cluster_size="2")
        for _ in range(6):
            submit(bench, "-l gpu=1")
        until(lambda: taken(bench).running_jobs == 2, 60, 0.2)
        snapshot = taken(bench)
        assert (len(snapshot.waiting_s), snapshot.free_slots) == (4, 2)
        said: list[str] = []
        limits = Limits(max_nodes=6, job_wait_s=-60, kill_after_s=0, stabilization_s=0)
        balancer = Balancer(bench.lifecycle(), limits, say=said.append)
        assert not balancer.run_once(now(bench))
        assert names(bench) == ["master", "node001", "node002"]
        assert "4 jobs" in said[-1]
        assert "4 more g4dn.xlarge nodes" in said[-1]
        until(lambda: taken(bench).running_jobs == 3, 60, 0.2)

    bench.cloud.call(body)


def test_it_keeps_the_budget_and_status_shows_decisions_and_money(bench: Bench) -> None:
    def body() -> None:
        bench.start(bench.lifecycle(), cluster_size="2")
        shown = bench.types("status", NAME)
        assert f"starcluster loadbalance {NAME}" in shown
        assert "since the start" not in shown  # nodes can have ended before
        submit(bench)
        until(lambda: taken(bench).running_jobs == 1, 60, 0.2)
        limits = Limits(max_nodes=3, budget=50)
        assert Balancer(bench.lifecycle(), limits).run_once(now(bench)) == ""
        shown = bench.types("status", NAME)
        assert re.search(r"^faulty: running, 2 nodes, \$1\.05/h$", shown, re.MULTILINE)
        assert re.search(r"\$0\.\d\d .* \$50\.00$", shown, re.MULTILINE)
        facts = json.loads(bench.types("status", "--json"))
        assert (facts["dollars_per_hour"], facts["budget"]) == (1.052, 50)
        assert [(each["nodes"], each["running_jobs"]) for each in facts["decisions"]] == [(2, 1)]
        ended = bench.types("loadbalance", "--budget", "0.01", NAME)
        assert f"starcluster start -x {NAME}" in ended
        assert {instance.state for instance in now(bench).instances} == {"stopped"}
        facts = json.loads(bench.types("status", NAME, "--json"))
        assert facts["problem"]
        assert facts["spent"] is None  # the amount is on the stopped master
        assert "Spent" not in bench.types("status", NAME)
        bench.types("start", "-x", NAME)
        facts = json.loads(bench.types("status", NAME, "--json"))
        assert facts["decisions"][-1]["action"] == "stop"
        assert facts["spent"] >= facts["decisions"][-1]["spent"]
        ending = Limits(max_nodes=3, idle_stop_s=0)
        now(bench).master.ssh.execute("qdel -u '*'")
        until(lambda: not taken(bench).jobs_left, 60, 0.2)
        assert Balancer(bench.lifecycle(), ending).run_once(now(bench)) == "stopped"

    bench.cloud.call(body)


def test_a_node_on_which_a_job_starts_after_the_snapshot_is_not_removed(bench: Bench) -> None:
    def body() -> None:
        bench.start(bench.lifecycle(), cluster_size="3")
        said: list[str] = []
        limits = Limits(max_nodes=3, kill_after_s=0, stabilization_s=0)
        balancer = Balancer(bench.lifecycle(), limits, say=said.append)
        decision = decide(taken(bench), limits)
        assert set(decision.remove) == {"node001", "node002"}
        submit(bench, "-l h=node002")
        until(lambda: taken(bench).busy == {"node002"}, 60, 0.2)
        assert balancer.actions.do(now(bench), decision) == ""
        assert names(bench) == ["master", "node002"]
        assert "node002" in said[-1]
        after = taken(bench)
        assert (after.running_jobs, after.busy) == (1, {"node002"})
        assert all(place.usable for place in after.cell.places)

    bench.cloud.call(body)
