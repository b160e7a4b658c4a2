"""``instance_profile``: each launch has it, also of a profile that EC2 does not know yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from starcluster.aws import instances
from starcluster.aws.ec2 import Ec2
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.config import config
from starcluster.errors import NotFound
from starcluster.launch import plan
from starcluster.launch.origin import Origin
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front
from tests.testbed.hostless import without_hosts

NAME = "starcluster-s3"
NOT_YET = (
    "InvalidParameterValue",
    f"Value ({NAME}) for parameter iamInstanceProfile.name is invalid. "
    "Invalid IAM Instance Profile name",
)


@pytest.fixture
def iam(aws: str) -> Any:
    """A client of IAM; its account has the profile ``NAME`` with a role."""
    client = boto3.client(
        "iam",
        endpoint_url=aws,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106
    )
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    client.create_role(RoleName=NAME, AssumeRolePolicyDocument=trust)
    client.create_instance_profile(InstanceProfileName=NAME)
    client.add_role_to_instance_profile(InstanceProfileName=NAME, RoleName=NAME)
    return client


@pytest.fixture
def lifecycle(
    front: Front, settings: config.Config, client_to: Callable[[str, str], Ec2], iam: Any
) -> Iterator[Callable[..., ClusterLifecycle]]:
    """A function that starts cluster c with a bid, and returns it."""
    overrides = {"instance_profile": NAME, "cluster_size": "3"}

    def start(**more: str) -> ClusterLifecycle:
        ec2 = client_to(front.address, "us-east-1")
        cluster = ClusterLifecycle(ec2, settings, "c")
        given = overrides | more
        origin = Origin(template="big", overrides=given)
        launcher = cluster.prepare(settings.template("big", given), origin)
        front.asked.clear()  # without the dry run
        cluster.create(launcher)
        return cluster

    with without_hosts():
        yield start


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between retries."""
    monkeypatch.setattr(instances, "_PROFILE_SETTLE_S", (0.0, 0.0))


def test_master_nodes_new_nodes_and_replacements_have_the_profile(
    front: Front, lifecycle: Callable[..., ClusterLifecycle]
) -> None:
    cluster = lifecycle(master_instance_type="t3.small")
    template = cluster.config.template("big", {"instance_profile": NAME})
    cluster.add(plan.more_nodes(template, ["node003"]), template)
    assert cluster.launcher is not None
    cluster.launcher.relaunch("node004")
    launches = front.sent("RunInstances")
    assert [form["MaxCount"] for form in launches] == ["1", "2", "1", "1"]
    assert {form["IamInstanceProfile.Name"] for form in launches} == {NAME}


def test_a_spot_fleet_has_it_and_waits_for_a_new_profile(
    front: Front, lifecycle: Callable[..., ClusterLifecycle], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Ec2.run_fleet

    def known_later(self: Ec2, request: Any) -> Any:
        front.refusals["RunInstances"] = [NOT_YET, NOT_YET]
        return original(self, request)

    monkeypatch.setattr(Ec2, "run_fleet", known_later)
    cluster = lifecycle(spot_bid="1")
    (data,) = front.sent("CreateLaunchTemplateVersion")
    assert data["LaunchTemplateData.IamInstanceProfile.Name"] == NAME
    spot = [each for each in cluster.ec2.instances(cluster="c") if each.alias != "master"]
    assert len(spot) == 2
    real = [form for form in front.sent("RunInstances") if form.get("DryRun") != "true"]
    assert [form["MaxCount"] for form in real] == ["1"]  # the master; no node is on demand


def test_a_launch_waits_for_a_new_profile_and_gives_up_with_its_name(
    front: Front, lifecycle: Callable[..., ClusterLifecycle]
) -> None:
    front.refusals["RunInstances"] = [NOT_YET, NOT_YET]
    cluster = lifecycle()
    assert len(cluster.ec2.instances(cluster="c")) == 3
    cluster.terminate()
    front.refusals["RunInstances"] = [NOT_YET] * 3
    with pytest.raises(NotFound, match=NAME) as caught:
        lifecycle()
    assert "aws iam list-instance-profiles" in caught.value.fix
    assert cluster.ec2.instances(cluster="c") == []


def test_start_checks_the_profile_before_the_launch(big: Run, front: Front, iam: Any) -> None:
    start = ("start", "--dry-run", "--instance-profile")
    assert big(*start, NAME, "c").returncode == 0
    arn = iam.get_instance_profile(InstanceProfileName=NAME)["InstanceProfile"]["Arn"]
    assert big(*start, arn, "c").returncode == 0
    assert front.sent("RunInstances")[-1]["IamInstanceProfile.Arn"] == arn
    iam.create_instance_profile(InstanceProfileName="bare")
    for name, fact in (
        ("starcluster-s4", "'starcluster-s4'"),
        (arn.replace("123456789012", "210987654321"), arn),
        ("bare", "aws iam add-role-to-instance-profile --instance-profile-name bare"),
        (f"arn:aws:iam::123456789012:role/ml/{NAME}", f"--role-name {NAME}"),
        ("two words", "instance_profile = two words"),
    ):
        done = big(*start, name, "c")
        assert done.returncode == 2, done.stderr
        assert fact in done.stderr
    assert front.sent("CreateSecurityGroup") == []


def test_who_may_not_read_the_profile_or_pass_its_role_is_told_by_the_dry_run(
    big: Run, front: Front, iam: Any
) -> None:
    front.refusals["GetInstanceProfile"] = [("AccessDenied", "not authorized")]
    assert big("start", "--dry-run", "--instance-profile", NAME, "c").returncode == 0
    role = f"arn:aws:iam::123456789012:role/{NAME}"
    text = f"You are not authorized to perform: iam:PassRole on resource: {role} because no"
    front.refusals["RunInstances"] = [("UnauthorizedOperation", text)]
    done = big("start", "--instance-profile", NAME, "c")
    assert done.returncode == 1
    assert f"allow iam:PassRole on {role}." in done.stderr
    assert front.sent("CreateSecurityGroup") == []
