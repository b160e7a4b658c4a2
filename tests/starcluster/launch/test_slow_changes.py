"""Stop, start, reboot and remove nodes while AWS's lists have the state from before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.cluster.running import describe_running
from starcluster.errors import ClusterError, Interrupted, NotTaken
from starcluster.launch.claim import hold
from tests.starcluster.launch.test_slow_aws import (
    add,
    module_cloud,
    of_the_cloud,
    operation,
    start,
)
from tests.testbed.hostless import HostlessCloud, without_hosts
from tests.waiting import until

__all__ = ["module_cloud", "of_the_cloud"]  # fixtures
LAG_S = 1.0


@pytest.fixture
def cloud(module_cloud: HostlessCloud) -> Iterator[HostlessCloud]:
    module_cloud.rules(seed=1, lag_s=[LAG_S, LAG_S])
    with without_hosts(state=module_cloud.state):
        yield module_cloud
    module_cloud.rules()


def states(cloud: HostlessCloud, name: str) -> dict[str, str]:
    found = cloud.instances(name)
    return {each.alias: each.state for each in found if each.state != "terminated"}


def test_stop_and_start_directly_after_each_other_do_not_believe_a_late_list(
    cloud: HostlessCloud,
) -> None:
    start(operation(cloud, "rest"), 2)
    assert operation(cloud, "rest").stop() == ["master", "node001"]
    assert states(cloud, "rest") == {"master": "stopped", "node001": "stopped"}
    assert sorted(operation(cloud, "rest").start_again().ready) == ["master", "node001"]
    assert states(cloud, "rest") == {"master": "running", "node001": "running"}
    operation(cloud, "rest").stop()
    until(lambda: set(states(cloud, "rest").values()) == {"stopped"})
    operation(cloud, "rest").terminate()
    assert cloud.left("rest") == []


@pytest.mark.parametrize(("call", "price"), [("stop", "$0.00/h"), ("start", "$7.82/h")])
def test_the_report_of_an_interrupted_change_has_the_price_after_it(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch, call: str, price: str
) -> None:
    start(operation(cloud, "price"), 2)
    if call == "start":
        operation(cloud, "price").stop()
    original = getattr(Ec2, call)

    def cut(self: Ec2, ids: Any) -> None:
        original(self, ids)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ec2, call, cut)
        one = operation(cloud, "price")
        with pytest.raises(Interrupted, match="2 instances exist") as caught:
            one.stop() if call == "stop" else one.start_again()
    assert price in caught.value.fix
    assert price in describe_running(one.ec2, "price", {})  # by another command
    operation(cloud, "price").terminate()
    assert cloud.left("price") == []


@pytest.mark.parametrize("whole", [True, False])
def test_an_interrupted_end_does_not_report_what_aws_still_lists(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    start(operation(cloud, "end"), 2)
    terminate = Ec2.terminate

    def cut(self: Ec2, ids: Any) -> None:
        terminate(self, ids)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ec2, "terminate", cut)
        one = operation(cloud, "end")
        with pytest.raises(Interrupted) as caught:
            one.terminate() if whole else one.remove(["node001"])
    there = "The cluster has no instances" if whole else "1 instance exists (master)"
    assert there in caught.value.fix
    operation(cloud, "end").terminate()
    assert cloud.left("end") == []


def test_of_two_removals_of_one_node_one_says_that_it_did_nothing(cloud: HostlessCloud) -> None:
    start(operation(cloud, "less"), 3)
    assert operation(cloud, "less").remove(["node002"]) == ["node002"]
    with pytest.raises(NotTaken, match="node002"):
        operation(cloud, "less").remove(["node002"])
    assert cloud.live("less") == ["master", "node001"]
    assert add(operation(cloud, "less"), "node002").ready == ("node002",)
    operation(cloud, "less").terminate()
    assert cloud.left("less") == []


@pytest.mark.parametrize("change", ["stop", "remove"])
def test_a_change_waits_until_another_command_has_launched_its_nodes(
    cloud: HostlessCloud, change: str
) -> None:
    start(operation(cloud, "turns"), 2)
    said: list[str] = []
    one = operation(cloud, "turns", progress=lambda alias, what: said.append(what))
    arguments = [["node001"]] if change == "remove" else []
    worker = threading.Thread(target=getattr(one, change), args=arguments)
    with hold.take(one.ec2, "turns", "addnode", ["node002"], progress=one.progress):
        worker.start()
        until(lambda: any("being extended by" in text for text in said))
        assert set(states(cloud, "turns").values()) == {"running"}
    worker.join()
    operation(cloud, "turns").terminate()
    assert cloud.left("turns") == []


def test_ctrl_c_while_another_command_launches_names_that_command(cloud: HostlessCloud) -> None:
    def interrupt(alias: str, what: str) -> None:
        raise KeyboardInterrupt

    start(operation(cloud, "wait"), 1)
    one = operation(cloud, "wait", progress=interrupt)
    with hold.take(one.ec2, "wait", "addnode", ["node001"], progress=print):
        with pytest.raises(ClusterError, match="interrupted") as caught:
            one.stop()
        assert "being extended by" in caught.value.fix
    operation(cloud, "wait").terminate()
    assert cloud.left("wait") == []
