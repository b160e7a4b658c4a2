"""Launches where AWS lists instances late, loses responses, and two commands act at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.cluster import lifecycle
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.config import config
from starcluster.errors import (
    ClusterError,
    InputError,
    Interrupted,
    PermissionDenied,
    StarClusterError,
)
from starcluster.launch import plan, wait
from starcluster.launch.claim import claims, hold
from starcluster.launch.origin import Origin
from starcluster.model import group_name
from tests.testbed.hostless import HostlessCloud, without_hosts

LAG_S = 2.0


@pytest.fixture(scope="module")
def module_cloud() -> Iterator[HostlessCloud]:
    with HostlessCloud() as made:
        yield made


@pytest.fixture
def cloud(module_cloud: HostlessCloud, request: pytest.FixtureRequest) -> Iterator[HostlessCloud]:
    module_cloud.rules(seed=1, lag_s=[LAG_S, LAG_S])
    with without_hosts():
        yield module_cloud
    module_cloud.rules()


def operation(cloud: HostlessCloud, name: str, **options: Any) -> ClusterLifecycle:
    settings = config.load(cloud.config, cloud.environment())
    return ClusterLifecycle(Ec2(settings.aws(), "us-east-1"), settings, name, **options)


@pytest.fixture(autouse=True)
def of_the_cloud(module_cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in module_cloud.environment().items():
        if name.startswith("AWS"):
            monkeypatch.setenv(name, value)


def start(one: ClusterLifecycle, size: int = 3) -> Any:
    overrides = {"cluster_size": str(size)}
    template = one.config.template("small", overrides)
    origin = Origin(template="small", overrides=overrides)
    return one.create(one.prepare(template, origin, check=False))


def add(one: ClusterLifecycle, *aliases: str, **options: Any) -> Any:
    template = one.config.template("small")
    return one.add(plan.more_nodes(template, aliases), template, **options)


def at_once(*work: Any) -> list[Any]:
    """Call functions in threads at once; return their results or errors."""
    results: list[Any] = [None] * len(work)

    def body(number: int) -> None:
        try:
            results[number] = work[number]()
        except StarClusterError as error:
            results[number] = error

    threads = [threading.Thread(target=body, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_two_starts_of_one_name_one_launches_and_the_other_says_who_does(
    cloud: HostlessCloud,
) -> None:
    cloud.rules(seed=1, lag_s=[LAG_S, LAG_S], slow_s={"RunInstances": [1.0, 1.0]})
    commands = [operation(cloud, "twice") for _ in range(2)]
    launchers = []
    for one in commands:
        template = one.config.template("small")
        launchers.append(one.prepare(template, Origin(template="small"), check=False))
    results = at_once(
        *(
            lambda one=one, it=it: one.create(it)
            for one, it in zip(commands, launchers, strict=True)
        )
    )
    (lost,) = (each for each in results if isinstance(each, ClusterError))
    assert lost.exit_code == 1
    assert "'twice'" in lost.what
    assert cloud.live("twice") == ["master", "node001", "node002"]
    operation(cloud, "twice").terminate()
    assert cloud.left("twice") == []


def test_a_start_while_another_one_launches_names_it_and_the_time(cloud: HostlessCloud) -> None:
    one = operation(cloud, "named")
    with hold.take(one.ec2, "named", "start", ["master"]):
        with pytest.raises(
            ClusterError, match=r"'named'.* by .*@.*process \d+.* since .* UTC"
        ) as it:
            hold.take(one.ec2, "named", "start", ["master"])
        assert "starcluster terminate named" in it.value.fix
        (note,) = claims.notes(one.ec2, ["named"])
        assert "AWS does not list yet: master" in note
    assert cloud.left("named") == []


def test_two_addnodes_at_once_get_different_names(cloud: HostlessCloud) -> None:
    start(operation(cloud, "grow"), 2)
    results = at_once(
        *(lambda: add(operation(cloud, "grow"), "node002") for _ in range(2)),
    )
    assert sorted(name for each in results for name in each.ready) == ["node002", "node003"]
    assert cloud.live("grow") == ["master", "node001", "node002", "node003"]
    with pytest.raises(InputError, match="node003"):
        add(operation(cloud, "grow"), "node003", renumber=False)
    operation(cloud, "grow").terminate()
    assert cloud.left("grow") == []


def test_terminate_directly_after_an_interrupted_launch_leaves_nothing(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Ec2.run

    def cut(self: Ec2, request: Any) -> Any:
        run(self, request)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ec2, "run", cut)
        with pytest.raises(ClusterError) as caught:
            start(operation(cloud, "cut"))
    for alias in cloud.live("cut"):
        assert alias in caught.value.fix
    assert len(cloud.live("cut")) == 3
    operation(cloud, "cut").terminate()
    assert cloud.left("cut") == []


@pytest.mark.parametrize("listed_once", [True, False])
def test_an_interrupted_request_for_the_group_leaves_nothing_that_is_not_told(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch, listed_once: bool
) -> None:
    cloud.rules(seed=1, lag_s=[600.0, 600.0])
    monkeypatch.setattr(lifecycle, "SETTLE_S", (0.01, 0.01, 0.01))
    create, lists = Ec2.create_security_group, Ec2.security_groups
    made: list[str] = []
    shown: list[str] = []

    def cut(self: Ec2, *arguments: Any, **named: Any) -> None:
        made.append(create(self, *arguments, **named))
        raise KeyboardInterrupt

    def flickers(self: Ec2, *arguments: Any, **named: Any) -> Any:
        if listed_once and made and not shown:
            shown.extend(made)
            cloud.rules()
            try:
                return lists(self, *arguments, **named)
            finally:
                cloud.rules(seed=1, lag_s=[600.0, 600.0])
        return lists(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Ec2, "create_security_group", cut)
        patched.setattr(Ec2, "security_groups", flickers)
        with pytest.raises(Interrupted) as caught:
            start(operation(cloud, "group"))
    assert made
    told: bool = "starcluster terminate group" in caught.value.fix
    assert told != listed_once
    assert bool(cloud.left("group")) != listed_once
    cloud.rules()
    if told:
        operation(cloud, "group").terminate()
    assert cloud.left("group") == []


def test_a_refused_request_for_the_group_is_not_reported_as_a_group(cloud: HostlessCloud) -> None:
    cloud.fault("CreateSecurityGroup", {"code": "UnauthorizedOperation"})
    with pytest.raises(PermissionDenied) as caught:
        start(operation(cloud, "denied"))
    assert "costs nothing" in caught.value.fix
    assert cloud.left("denied") == []


def test_terminate_by_another_process_ends_a_launch_that_aws_does_not_list(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.rules(seed=1, lag_s=[600.0, 600.0])

    def killed(self: Any, *_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:  # nothing is cleaned up, as after kill -9
        patched.setattr(hold.Held, "__exit__", killed)
        patched.setattr(ClusterLifecycle, "_bring_up", killed)
        with pytest.raises(SystemExit):
            start(operation(cloud, "killed"))
    assert operation(cloud, "killed").ec2.instances(cluster="killed") == []
    assert len(cloud.live("killed")) == 3
    cloud.rules(seed=1, lag_s=[LAG_S, LAG_S])
    removed = operation(cloud, "killed").terminate()
    assert {"master", "node001", "node002"} <= set(removed)
    assert cloud.left("killed") == []


def test_a_launch_whose_cluster_was_terminated_meanwhile_launches_nothing(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.rules()
    run = Ec2.run

    def late(self: Ec2, request: Any) -> Any:
        operation(cloud, "fenced").terminate()
        return run(self, request)

    monkeypatch.setattr(Ec2, "run", late)
    with pytest.raises(StarClusterError):
        start(operation(cloud, "fenced"))
    assert cloud.left("fenced") == []


def test_a_start_takes_over_what_a_killed_start_claimed(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        boot, _, _ = claims.this_process()[0].split()
        patched.setattr(hold, "this_process", lambda: (f"{boot} 1 0.00", "ghost"))
        hold.take(operation(cloud, "ghost").ec2, "ghost", "start", ())
    monkeypatch.setattr(wait, "LAG_S", 2 * LAG_S)
    assert cloud.left("ghost") == ["starcluster/ghost"]
    assert len(start(operation(cloud, "ghost")).ready) == 3
    operation(cloud, "ghost").terminate()
    assert cloud.left("ghost") == []


def test_a_launch_whose_response_is_lost_is_not_made_twice(cloud: HostlessCloud) -> None:
    cloud.rules()
    cloud.fault("RunInstances", {"how": "lost"})
    assert len(start(operation(cloud, "lost")).ready) == 3
    assert cloud.live("lost") == ["master", "node001", "node002"]
    operation(cloud, "lost").terminate()
    assert cloud.left("lost") == []


def test_aws_refuses_the_launch_of_a_command_whose_claim_another_one_took_over(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.rules()
    run = Ec2.run

    def suspended(self: Ec2, request: Any) -> Any:
        assert request.template_id, "the launch must name its claim"
        self.delete_template(request.template_id)
        return run(self, request)

    monkeypatch.setattr(Ec2, "run", suspended)
    with pytest.raises(ClusterError, match="another command took over cluster 'suspended'"):
        start(operation(cloud, "suspended"))
    assert cloud.left("suspended") == []


def test_terminate_removes_a_group_that_aws_lists_only_at_the_second_look(
    cloud: HostlessCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.rules()
    late = operation(cloud, "late")
    vpc = next(group.vpc_id for group in late.ec2.security_groups() if group.vpc_id)
    late.ec2.create_security_group(group_name("late"), vpc=vpc, description="left by a start")
    looks = Ec2.security_groups
    first_look = [True]

    def lagging(self: Ec2, *names: str, **filters: str) -> Any:
        return [] if first_look and first_look.pop() else looks(self, *names, **filters)

    monkeypatch.setattr(Ec2, "security_groups", lagging)
    assert group_name("late") in " ".join(late.terminate())
