"""Launches against the stand-in for EC2 when AWS launches something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, SecurityGroup
from starcluster.cluster import lifecycle, operation, resize
from starcluster.cluster.cluster import Cluster
from starcluster.config import config
from starcluster.errors import CapacityError, InputError, NotFound, SetupError, SshError
from starcluster.launch import groups, plan
from starcluster.launch.origin import Origin
from starcluster.launch.userdata import scripts_of
from starcluster.model import TAG_ALIASES, TAG_CLUSTER
from starcluster.node.node import Node
from starcluster.setup.run import SetupResult
from tests.starcluster.launch.test_many_nodes import SilentShell

NO_CAPACITY = "no capacity for this type"


def no_spot(self: Ec2, request: Any) -> Any:
    return [], [CapacityError(NO_CAPACITY)]


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices: on demand $1.00 (larger type $3.00), spot $0.20. There is no spot capacity."""
    dollars = {"t3.micro": 1.0, "t3.large": 3.0}
    monkeypatch.setattr(
        prices, "on_demand", lambda ec2, types: {t: dollars[t] for t in types if t in dollars}
    )
    monkeypatch.setattr(prices, "spot", lambda ec2, types: dict.fromkeys(types, 0.2))
    monkeypatch.setattr(Ec2, "run_fleet", no_spot)
    monkeypatch.setattr(Ec2, "placement_groups", lambda self, name: [])  # moto has none


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize(("cap", "launched"), [("2", 1), ("2.99", 1), ("3", 3)])
def test_what_takes_the_place_of_spot_instances_stays_below_the_cap(
    ec2: Ec2, settings: config.Config, cap: str, launched: int
) -> None:
    overrides = {"cluster_size": "3", "spot_bid": "0.5", "max_hourly_cost": cap}
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    launcher = cluster.prepare(
        settings.template("big", overrides),
        Origin(template="big", overrides=overrides),
        check=False,
    )
    if launched == 3:
        cluster.create(launcher, set_up_too=False)
    else:
        with pytest.raises(CapacityError, match=r"t3\.micro.* max_hourly_cost"):
            cluster.create(launcher, set_up_too=False)
    assert len(ec2.instances(cluster="big")) == launched


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize(("cap", "launched"), [("5", []), ("6", ["t3.large"] * 2)])
def test_another_type_stays_below_the_cap_too(
    ec2: Ec2,
    settings: config.Config,
    monkeypatch: pytest.MonkeyPatch,
    cap: str,
    launched: list[str],
) -> None:
    original = Ec2.run

    def none_small(self: Ec2, request: Any) -> Any:
        if request.places[0].instance_type == "t3.micro":
            raise CapacityError(NO_CAPACITY)
        return original(self, request)

    monkeypatch.setattr(Ec2, "run", none_small)
    overrides = {"fallback_instance_types": "t3.large", "max_hourly_cost": cap}
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    template = settings.template("big", overrides)
    launcher = cluster.prepare(template, Origin(template="big", overrides=overrides), check=False)
    if launched:
        cluster.create(launcher, set_up_too=False)
    else:
        with pytest.raises(CapacityError, match=NO_CAPACITY):
            cluster.create(launcher, set_up_too=False)
    assert [instance.type for instance in ec2.instances(cluster="big")] == launched


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("size", ["1", "2"])
def test_a_master_that_aws_ends_as_it_boots_is_told_in_awss_words(
    ec2: Ec2, settings: config.Config, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    why = "Client.VolumeLimitExceeded: Volume limit exceeded"

    def ended(ec2: Ec2, ids: list[str], state: str, limit_s: float) -> list[Instance]:
        found = ec2.instances(ids)
        return [
            replace(instance, state="terminated", reason=why)
            if instance.alias == "master"
            else instance
            for instance in found
        ]

    monkeypatch.setattr(operation, "wait_for", ended)
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    template = settings.template("big", {"cluster_size": size})
    launcher = cluster.prepare(template, Origin(template="big"), check=False)
    with pytest.raises(SetupError, match=why) as caught:
        cluster.create(launcher)
    assert caught.value.failed == {"master": why}


@pytest.mark.usefixtures("priced")
def test_a_node_that_hangs_is_rebooted_with_the_others(
    ec2: Ec2, settings: config.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    template = settings.template("big")
    origin = Origin(template="big")
    cluster.create(cluster.prepare(template, origin, check=False), set_up_too=False)

    def mark(node: Node) -> None:
        if node.alias == "node001":
            raise SshError("node001: 10.0.0.5 port 22: cannot connect by SSH within 10 s")

    rebooted: list[str] = []
    monkeypatch.setattr(lifecycle, "mark_boot", mark)
    monkeypatch.setattr(lifecycle, "wait_for_reboot", lambda node, limit_s: None)
    monkeypatch.setattr(Ec2, "reboot", lambda self, ids: rebooted.extend(ids))
    assert cluster.restart(set_up_too=False).ready == ("master", "node001")
    assert len(rebooted) == 2


def test_a_group_that_a_killed_start_left_half_made_is_finished(
    ec2: Ec2, settings: config.Config
) -> None:
    vpc = ec2.default_vpc()
    arguments = {"GroupName": "@sc-big", "Description": "starcluster big", "VpcId": vpc}
    id = ec2.call("ec2", "CreateSecurityGroup", **arguments)["GroupId"]
    template = settings.template("big")
    for _ in range(2):
        assert groups.security_group(ec2, "big", template, vpc=vpc) == id
        (found,) = ec2.call("ec2", "DescribeSecurityGroups", GroupIds=[id])["SecurityGroups"]
        among = [pair["GroupId"] for r in found["IpPermissions"] for pair in r["UserIdGroupPairs"]]
        assert among == [id]


def test_two_user_data_scripts_of_one_name_both_go_to_the_nodes(
    settings: config.Config, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "setup.sh").write_text(f"#!/bin/sh\necho {folder}\n")
    scripts = f"{tmp_path}/one/setup.sh, {tmp_path}/two/setup.sh"
    template = settings.template("big", {"userdata_scripts": scripts})
    assert len(scripts_of(template)) == 2


@pytest.mark.usefixtures("priced")
def test_nodes_that_were_to_be_had_work_though_the_others_were_not(
    ec2: Ec2, settings: config.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "shell", lambda self, instance: SilentShell(instance))
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    origin = Origin(template="big")
    cluster.create(cluster.prepare(settings.template("big"), origin, check=False), set_up_too=False)
    original = Ec2.run

    def one_of_two(self: Ec2, request: Any) -> Any:
        return original(self, replace(request, count=1, spot=False)), []

    def none(self: Ec2, request: Any) -> Any:
        raise CapacityError(NO_CAPACITY)

    joined: list[str] = []

    def join(new: list[Node], *_: Any, **__: Any) -> SetupResult:
        joined.extend(node.alias for node in new)
        return SetupResult(ready=tuple(joined))

    monkeypatch.setattr(Ec2, "run_fleet", one_of_two)
    monkeypatch.setattr(Ec2, "run", none)
    monkeypatch.setattr(resize, "add_nodes", join)
    zone = {"availability_zone": "us-east-1a"}
    template = settings.template("big", {"spot_bid": "0.5", **zone})
    with pytest.raises(CapacityError, match=NO_CAPACITY):
        cluster.add(plan.more_nodes(template, ["node002", "node003"]), template)
    assert joined == ["node002"]


def test_a_group_that_is_gone_already_is_no_failure_of_its_end() -> None:
    gone = NotFound("AWS does not know it", code="InvalidGroup.NotFound")

    class Lagging:
        def security_groups(self, name: str) -> list[SecurityGroup]:
            return [SecurityGroup(id="sg-1", name=name, vpc_id="vpc-1")]

        def placement_groups(self, name: str) -> list[str]:
            return [name]

        def delete_security_group(self, id: str) -> None:
            raise gone

        def delete_placement_group(self, name: str) -> None:
            raise gone

    ec2: Any = Lagging()
    assert groups.remove_groups(ec2, "big") == []


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("together", ["true", "false"])
def test_a_placement_group_keeps_the_spot_nodes_in_the_zone_of_the_master(
    ec2: Ec2, settings: config.Config, monkeypatch: pytest.MonkeyPatch, together: str
) -> None:
    asked: list[str] = []

    def fleet(self: Ec2, request: Any) -> Any:
        asked.extend(place.zone for place in request.places)
        return no_spot(self, request)

    monkeypatch.setattr(Ec2, "run_fleet", fleet)
    group = "@sc-big" if together == "true" else ""
    monkeypatch.setattr(groups, "placement_group", lambda *_: group)  # moto has none
    overrides = {"spot_bid": "0.5", "placement_group": together}
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    template = settings.template("big", overrides)
    origin = Origin(template="big", overrides=overrides)
    cluster.create(cluster.prepare(template, origin, check=False), set_up_too=False)
    (master, _) = sorted(ec2.instances(cluster="big"), key=lambda instance: instance.alias)
    assert asked[0] == master.zone
    assert (len(set(asked)) == 1) is (together == "true")


@pytest.mark.usefixtures("priced")
def test_new_nodes_go_where_the_others_are(
    ec2: Ec2, settings: config.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "shell", lambda self, instance: SilentShell(instance))
    monkeypatch.setattr(resize, "add_nodes", lambda *_, **__: SetupResult(ready=("node002",)))
    overrides = {"availability_zone": "us-east-1c"}
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    template = settings.template("big", overrides)
    cluster.create(cluster.prepare(template, Origin(template="big"), check=False), set_up_too=False)
    template = settings.template("big")
    cluster.add(plan.more_nodes(template, ["node002"]), template)
    assert {instance.zone for instance in ec2.instances(cluster="big")} == {"us-east-1c"}


@pytest.mark.usefixtures("priced")
def test_a_description_that_no_tag_holds_is_refused_before_anything_is_made(
    ec2: Ec2, settings: config.Config
) -> None:
    template, origin = settings.template("big"), Origin(template="big")
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    cluster.prepare(template, origin, "x" * 256, check=False)
    with pytest.raises(InputError, match=r"\b257\b.*\b256\b"):
        cluster.prepare(template, origin, "x" * 257, check=False)


@pytest.mark.usefixtures("priced")
def test_aws_is_asked_for_the_same_tags_before_the_launch(
    ec2: Ec2, settings: config.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    original = Ec2.run

    def run(self: Ec2, request: Any) -> Any:
        asked.append(request)
        return original(self, request)

    monkeypatch.setattr(Ec2, "check_run", lambda self, request: asked.append(request))
    monkeypatch.setattr(Ec2, "run", run)
    cluster = lifecycle.ClusterLifecycle(ec2, settings, "big")
    launcher = cluster.prepare(settings.template("big"), Origin(template="big"), "mine", check=True)
    cluster.create(launcher, set_up_too=False)
    before, launch = (set(request.tags) for request in asked)
    assert TAG_CLUSTER in before
    assert launch - before == {TAG_ALIASES}
