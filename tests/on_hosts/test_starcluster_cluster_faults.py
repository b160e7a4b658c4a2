"""Faults while a cluster starts: a clear message, and no forgotten resources."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from starcluster.aws import Ec2
from starcluster.cluster import ClusterLifecycle, Outcome
from starcluster.cluster.operation import WAITING_FOR_SSH
from starcluster.errors import (
    CapacityError,
    ClusterError,
    InputError,
    PermissionDenied,
    QuotaError,
    SetupError,
    StarClusterError,
)
from starcluster.launch import Origin
from starcluster.model import TAG_ALIAS
from starcluster.setup import Step
from tests.on_hosts.live_cluster import NAME, TYPE, Bench
from tests.testbed.cloud import Cloud
from tests.waiting import until

LAG_S = 1.5  # longest lag of the lists of AWS
pytestmark = [pytest.mark.sge, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    before = dict(os.environ)
    with Cloud() as cloud:
        yield cloud.call(Bench, cloud)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def cleared(bench: Bench, request: pytest.FixtureRequest) -> Iterator[None]:
    """Let AWS list changes late, in each test with other delays; clear the cluster afterwards."""
    seed = zlib.crc32(request.node.name.encode())
    bench.cloud.rules(seed=seed, lag_s=[0.0, LAG_S], flicker=0.3, slow_s={"RunInstances": [0, 0.5]})
    until(lambda: bench.cloud.call(bench.lists_are_empty), 30, 0.1)  # of the test before
    yield
    bench.cloud.call(bench.clear)


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


def queues(bench: Bench) -> dict[str, str]:
    """Return the state of each queue instance by host; empty if it accepts jobs."""
    rows = [line.split() for line in bench.types("sshmaster", NAME, "qstat -f").splitlines()]
    found = {row[0].partition("@")[2]: row[5:] for row in rows if row[:1] and "all.q@" in row[0]}
    return {host: "".join(state) for host, state in found.items()}


def interrupted(bench: Bench, lifecycle: ClusterLifecycle, **overrides: str) -> None:
    """Start and interrupt; the error then reports all that exists, and terminate removes it."""
    template = bench.config.template(
        "tested", {"cluster_size": "2", "placement_group": "true"} | overrides
    )
    with pytest.raises(ClusterError) as caught:
        lifecycle.create(lifecycle.prepare(template, Origin(template="tested")))
    assert isinstance(caught.value.__cause__, KeyboardInterrupt)
    there = bench.truth.instances(cluster=NAME)
    if bench.nothing_left():
        assert_reports_nothing(caught.value)
    else:
        assert f"starcluster terminate {NAME}" in caught.value.fix
        assert all((instance.alias or instance.id) in caught.value.fix for instance in there)
        bench.lifecycle().terminate()
    assert bench.nothing_left()
    assert [pair.name for pair in bench.truth.key_pairs()] == ["mine"]


def assert_reports_nothing(error: StarClusterError) -> None:
    """The fix must not name a command for the cluster, because nothing of it exists."""
    assert error.fix
    assert NAME not in error.fix


@pytest.mark.parametrize("point", range(10))
def test_ctrl_c_tells_what_runs_and_terminate_removes_all(bench: Bench, point: int) -> None:
    def body() -> None:
        steps: list[str] = []

        def progress(alias: str, what: str) -> None:
            if what not in steps:
                steps.append(what)
                if len(steps) == point + 1:
                    raise KeyboardInterrupt

        interrupted(bench, bench.lifecycle(progress))

    bench.cloud.call(body)


@pytest.mark.parametrize(
    "call", ["create_security_group", "create_placement_group", "run", "run_fleet", "tag"]
)
def test_ctrl_c_while_aws_answers_leaves_nothing_that_is_not_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    original = getattr(Ec2, call)

    def done_and_cut(self: Ec2, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        raise KeyboardInterrupt

    def body() -> None:
        monkeypatch.setattr(Ec2, call, done_and_cut)
        interrupted(bench, bench.lifecycle(), spot_bid="0.3")

    bench.cloud.call(body)


CUT = (("restart",), ("addnode", "-a", "node001"), ("stop", "-c"))


@pytest.mark.parametrize("seed", range(len(CUT)))
def test_a_command_that_is_cut_at_a_random_instant_can_be_repeated(bench: Bench, seed: int) -> None:
    choice = random.Random(seed)
    words = (*CUT[seed], NAME)

    def body() -> None:
        bench.start(bench.lifecycle(), cluster_size="1")
        for number in choice.sample((signal.SIGKILL, signal.SIGINT), 2):
            text = cut(bench, words, choice.uniform(0.0, 4.0), number)
            assert "Traceback" not in text, text
        if "node001" in live(bench) and "-a" in words:
            told = bench.types(*words, status=2)
            assert f"starcluster addnode -x -a node001 {NAME}" in told
            bench.types("addnode", "-x", "-a", "node001", NAME)
        else:
            bench.types(*words)
        assert live(bench) == (["master", "node001"] if "-a" in words else ["master"])
        if words[0] == "stop":
            assert [each.state for each in bench.truth.instances(cluster=NAME)] == ["stopped"]
            bench.types("start", "-x", NAME)
        assert queues(bench) == dict.fromkeys(live(bench), "")
        bench.lifecycle().terminate()
        assert bench.nothing_left()

    bench.cloud.call(body)


def cut(bench: Bench, words: tuple[str, ...], after_s: float, number: int) -> str:
    """Start a command and send it a signal after its first request; return what it said."""
    before = len(bench.cloud.calls("DescribeInstances"))
    argv = [sys.executable, "-m", "starcluster", "-c", str(bench.cloud.home / "config"), *words]
    with subprocess.Popen(
        bench.cloud.enter(argv),
        env=bench.cloud.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        until(lambda: len(bench.cloud.calls("DescribeInstances")) > before, 120)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        process.send_signal(number)
        return process.communicate()[0]


def live(bench: Bench) -> list[str]:
    """Return the aliases of all instances of the account; each has one, and a host of its own."""
    found = bench.truth.instances()
    assert {each.id for each in found} == {each.id for each in bench.truth.instances(cluster=NAME)}
    return sorted(each.alias for each in found)


def test_ctrl_c_typed_at_the_command_tells_how_to_go_on(bench: Bench) -> None:
    def body() -> None:
        argv = [sys.executable, "-m", "starcluster", "-c", str(bench.cloud.home / "config")]
        with subprocess.Popen(
            bench.cloud.enter([*argv, "start", "-c", "small", NAME]),
            env=bench.cloud.environment(),
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            said = line = "-"
            while line and not said.endswith(f"{Step.PREPARE}\n"):
                said += (line := process.stderr.readline())
            process.send_signal(signal.SIGINT)
            errors = process.stderr.read()
        assert process.returncode == 128 + signal.SIGINT, said + errors
        assert re.search(r"^Error: .*\n.*\b3\b.* \(master, node001, node002\)", errors, re.M)
        assert "Traceback" not in errors
        assert f"starcluster start -x {NAME}" in errors
        bench.types("terminate", "-c", NAME)
        assert bench.nothing_left()

    bench.cloud.call(body)
