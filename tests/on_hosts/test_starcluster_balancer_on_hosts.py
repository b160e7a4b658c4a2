"""A real cluster that grows and shrinks with its queue."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from starcluster.balance import Balancer, Limits, Stats
from starcluster.balance.loop import drain, take_snapshot
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


def names(bench: Bench) -> list[str]:
    return [instance.alias for instance in now(bench).instances]


def submit(bench: Bench, *options: str) -> None:
    command = f"echo sleep 300 | qsub -cwd -j y -o /dev/null -N s {' '.join(options)}"
    now(bench).master.ssh.execute(f"su - sgeadmin -c '{command}'")


def test_it_grows_while_jobs_wait_and_shrinks_when_none_is_left(bench: Bench) -> None:
    def body() -> None:
        os.environ["TZ"] = "XST-9"  # another time zone than the cluster's
        time.tzset()
        bench.start(bench.lifecycle(), cluster_size="2")
        submit(bench, "-h")
        submit(bench, "-t 1-9")
        until(lambda: take_snapshot(now(bench)).running_jobs == 4, 60, 0.2)  # 2 slots on each node
        snapshot = take_snapshot(now(bench))
        assert len(snapshot.waiting_s) == 5
        assert all(-5 < seconds < 60 for seconds in snapshot.waiting_s)
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
        until(lambda: "node001" not in take_snapshot(now(bench)).busy, 30, 0.2)
        assert (
            take_snapshot(now(bench)).running_jobs + len(take_snapshot(now(bench)).waiting_s) == 9
        )
        now(bench).master.ssh.execute("qdel -u sgeadmin")
        until(lambda: not take_snapshot(now(bench)).running_jobs, 30, 0.2)
        balancer.stats = Stats(lookback=timedelta(hours=1))
        assert not balancer.run_once(now(bench))
        assert names(bench) == ["master"]
        (row,) = balancer.stats.rows
        assert (row.nodes, row.remove, row.running_jobs) == (3, 2, 0)
        assert row.jobs_ended >= 4
        assert 0 < row.mean_run_s < 200
        ending = Limits(max_nodes=3, kill_after_s=0, stabilization_s=0, kill_cluster=True)
        assert Balancer(bench.lifecycle(), ending, say=said.append).run_once(now(bench))
        assert bench.nothing_left()

    bench.cloud.call(body)
