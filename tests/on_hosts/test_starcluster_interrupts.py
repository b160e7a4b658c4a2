"""Interrupted commands on a cluster: they tell what runs, and can be repeated."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from starcluster.aws import Ec2
from starcluster.cluster import ClusterLifecycle
from starcluster.errors import (
    ClusterError,
)
from starcluster.launch import Origin
from starcluster.setup import Step
from tests.on_hosts.late_lists import assert_reports_nothing, cleared_after, late_bench
from tests.on_hosts.live_cluster import NAME, Bench, queues
from tests.waiting import until

pytestmark = [pytest.mark.sge, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with late_bench() as made:
        yield made


@pytest.fixture(autouse=True)
def cleared(bench: Bench, request: pytest.FixtureRequest) -> Iterator[None]:
    with cleared_after(bench, request.node.name):
        yield


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
