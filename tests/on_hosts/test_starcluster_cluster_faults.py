"""Faults while a cluster starts: a clear message, and no forgotten resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from starcluster.cluster import Outcome
from starcluster.cluster.operation import WAITING_FOR_SSH
from starcluster.errors import (
    CapacityError,
    ClusterError,
    InputError,
    PermissionDenied,
    QuotaError,
    SetupError,
)
from starcluster.launch import Origin
from starcluster.model import TAG_ALIAS
from starcluster.setup import Step
from tests.on_hosts.late_lists import assert_reports_nothing, cleared_after, late_bench
from tests.on_hosts.live_cluster import NAME, TYPE, Bench, queues

pytestmark = [pytest.mark.sge, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with late_bench() as made:
        yield made


@pytest.fixture(autouse=True)
def cleared(bench: Bench, request: pytest.FixtureRequest) -> Iterator[None]:
    with cleared_after(bench, request.node.name):
        yield


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("VcpuLimitExceeded", QuotaError),
        ("UnauthorizedOperation", PermissionDenied),
    ],
)
def test_a_refused_launch_says_why_and_leaves_nothing(
    bench: Bench, code: str, kind: type[Exception]
) -> None:
    def body() -> None:
        lifecycle = bench.lifecycle()
        template = bench.config.template("small")
        launcher = lifecycle.prepare(template, Origin(template="small"))
        bench.cloud.fail("RunInstances", code)
        with pytest.raises(kind, match=code) as caught:
            lifecycle.create(launcher)
        assert_reports_nothing(caught.value)
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_a_permission_that_is_missing_is_found_before_anything_is_made(bench: Bench) -> None:
    def body() -> None:
        bench.cloud.fail("RunInstances", "UnauthorizedOperation")
        with pytest.raises(PermissionDenied):
            bench.start(bench.lifecycle())
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_where_one_zone_has_no_capacity_the_next_is_taken_and_where_none_has_it_says_so(
    bench: Bench,
) -> None:
    def body() -> None:
        bench.cloud.no_capacity({"type": TYPE})
        with pytest.raises(CapacityError) as caught:
            bench.start(bench.lifecycle())
        assert_reports_nothing(caught.value)
        assert bench.nothing_left()
        bench.cloud.no_capacity({"type": TYPE, "zone": "us-east-1a"})
        said: list[str] = []
        bench.start(bench.lifecycle(lambda alias, what: said.append(what)), disable_queue="true")
        bench.cloud.no_capacity()
        assert any(re.search(f"{TYPE}.*us-east-1a", text) for text in said)
        assert {instance.zone for instance in bench.truth.instances(cluster=NAME)} == {"us-east-1b"}
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_spot_falls_back_to_on_demand_and_keeps_the_master_off_spot(bench: Bench) -> None:
    def body() -> None:
        bench.cloud.no_capacity({"type": TYPE, "market": "spot"})
        bench.start(bench.lifecycle(), spot_bid="0.3", disable_queue="true")
        found = bench.truth.instances(cluster=NAME)
        assert [instance.is_spot for instance in found] == [False] * 3
        bench.lifecycle().terminate()
        bench.cloud.no_capacity()
        bench.start(bench.lifecycle(), spot_bid="0.3", disable_queue="true")
        found = bench.truth.instances(cluster=NAME)
        spot = {instance.tags[TAG_ALIAS]: instance.is_spot for instance in found}
        assert spot == {"master": False, "node001": True, "node002": True}
        with pytest.raises(ClusterError, match=r"node001, node002\n.*starcluster stop -t"):
            bench.lifecycle().stop()
        bench.lifecycle().stop(terminate_unstoppable=True)
        (left,) = bench.truth.instances(cluster=NAME)
        assert (left.alias, left.state) == ("master", "stopped")
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_throttling_is_waited_out(bench: Bench) -> None:
    def body() -> None:
        for action in ("RunInstances", "CreateTags", "DescribeInstances"):
            bench.cloud.fail(action, "RequestLimitExceeded", times=2)
        bench.start(bench.lifecycle(), disable_queue="true")
        assert len(bench.cloud.nodes()) == 3
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_what_costs_too_much_is_not_launched(bench: Bench) -> None:
    def body() -> None:
        with pytest.raises(InputError, match=r"\$1\.58/h.*max_hourly_cost = \$1\.00"):
            bench.start(bench.lifecycle(), max_hourly_cost="1")
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_a_node_without_ssh_is_named_and_the_others_take_jobs(bench: Bench) -> None:
    def body() -> None:
        outcome = start_with_a_mute_node(bench, "leave")
        assert len(outcome.ready) == 2
        ((alias, why),) = outcome.failed.items()
        assert alias.startswith("node")
        assert "port 22" in why
        assert len(bench.cloud.nodes()) == 3
        text = bench.lifecycle().describe_running()
        assert re.search(r"\b3\b.* \(master, node001, node002\): \$1\.58/h", text)
        assert f"starcluster terminate {NAME}" in text
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_a_bad_node_is_replaced_where_that_is_wished(bench: Bench) -> None:
    def body() -> None:
        outcome = start_with_a_mute_node(bench, "replace")
        assert sorted(outcome.ready) == ["master", "node001", "node002"]
        assert not outcome.failed
        assert len(bench.cloud.nodes()) == 3
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def start_with_a_mute_node(bench: Bench, bad: str) -> Outcome:
    """Start a cluster in which node001 boots without SSH."""

    def progress(alias: str, what: str) -> None:
        if alias == "node001" and what == WAITING_FOR_SSH:
            bench.node(alias).run("pkill", "sshd")

    lifecycle = bench.lifecycle(_once(progress), bad, ssh_s=25)
    return bench.start(lifecycle)


def _once(progress: Callable[[str, str], None]) -> Callable[[str, str], None]:
    seen: set[tuple[str, str]] = set()

    def say(alias: str, what: str) -> None:
        if (alias, what) not in seen:
            seen.add((alias, what))
            progress(alias, what)

    return say


def test_a_node_that_dies_during_set_up_is_named(bench: Bench) -> None:
    def body() -> None:
        def progress(alias: str, what: str) -> None:
            if (alias, what) == ("node002", Step.JOIN):
                (instance,) = (
                    instance
                    for instance in bench.truth.instances(cluster=NAME)
                    if instance.alias == alias
                )
                bench.truth.terminate([instance.id])

        outcome = bench.start(bench.lifecycle(_once(progress)))
        assert sorted(outcome.ready) == ["master", "node001"]
        assert list(outcome.failed) == ["node002"]
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_spot_instances_that_were_interrupted_before_they_had_a_name_get_one(
    bench: Bench,
) -> None:
    def body() -> None:
        bench.cloud.fail("CreateTags", "UnauthorizedOperation", times=2)
        with pytest.raises(SetupError, match="CreateTags") as caught:
            bench.start(bench.lifecycle(), disable_queue="true", spot_bid="0.3")
        assert f"starcluster start -x {NAME}" in str(caught.value)
        found = [instance.alias for instance in bench.truth.instances(cluster=NAME)]
        assert sorted(found) == ["", "", "master"]
        bench.lifecycle().start_again()
        found = {instance.alias for instance in bench.truth.instances(cluster=NAME)}
        assert found == {"master", "node001", "node002"}
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_a_node_whose_ssh_is_cut_in_the_middle_is_named_and_start_x_finishes_it(
    bench: Bench,
) -> None:
    def body() -> None:
        def progress(alias: str, what: str) -> None:
            if (alias, what) == ("node001", Step.JOIN):
                bench.node(alias).run("pkill", "-KILL", "sshd")

        lifecycle = bench.lifecycle(_once(progress))
        outcome = bench.start(lifecycle)
        assert sorted(outcome.ready) == ["master", "node002"]
        ((alias, why),) = outcome.failed.items()
        assert alias == "node001"
        assert "SSH" in why
        assert f"starcluster start -x {NAME}" in lifecycle.describe_running()
        bench.node("node001").run("/usr/sbin/sshd")
        output = bench.types("start", "-x", NAME)
        assert re.search(rf"{NAME} .*\b3 nodes", output)
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_a_node_whose_gpu_fails_the_self_test_is_left_out_and_takes_no_jobs(bench: Bench) -> None:
    def body() -> None:
        bench.cloud.break_gpus(1)
        output = bench.types("start", "-c", "tested", "-s", "2", NAME, status=1)
        assert re.search(r"\b1 of 2 .*\n  node001: gpus: ", output)
        assert "libcuda" in output
        assert "qsub" not in output
        assert re.search(r"\b2\b.* \(master, node001\): \$1\.05/h", output)
        assert f"starcluster removenode -a node001 {NAME}" in output
        assert queues(bench) == {"master": "", "node001": "d"}
        bench.types("removenode", "-c", "-a", "node001", NAME)
        assert queues(bench) == {"master": ""}
        bench.types("terminate", "-c", NAME)
        assert bench.nothing_left()

    bench.cloud.call(body)


def test_a_node_whose_gpu_fails_is_replaced_and_the_master_never_is(bench: Bench) -> None:
    def body() -> None:
        for number in (0, 2):
            bench.cloud.break_gpus(number)
        start = ("start", "-c", "tested", "--on-bad-node", "replace", NAME)
        output = bench.types(*start, status=1)
        assert re.search(r"node002: .*: gpus: ", output)
        assert re.search(r"\b1 of 3 .*\n  master: gpus: ", output)
        assert "removenode" not in output
        assert queues(bench) == {"master": "d", "node001": "", "node002": ""}
        assert len(bench.cloud.nodes()) == 3
        bench.types("terminate", "-c", NAME)
        assert bench.nothing_left()

    bench.cloud.call(body)
