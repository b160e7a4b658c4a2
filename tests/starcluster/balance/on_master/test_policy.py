"""The role of the master may do what its cluster needs, and nothing to another one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from starcluster.balance.on_master.policy import Scope, policy
from starcluster.model import TAG_CLUSTER
from tests.testbed.policies import ARN, Estate, Need, allows, denied, needs_of

SCOPE = Scope(
    partition="aws",
    region="us-east-1",
    account="123456789012",
    cluster="gpu",
    group="sg-1",
    vpc="vpc-1",
    keyname="mine",
    types=("g4dn.xlarge", "g5.xlarge"),
    parameters=("/aws/service/image", "/own/image"),
)
MINE, OTHER = {TAG_CLUSTER: "gpu"}, {TAG_CLUSTER: "gpu2"}
ESTATE = Estate(
    tags={"i-1": MINE, "i-2": OTHER, "i-3": {}, "lt-1": MINE, "lt-2": OTHER, "sg-1": MINE},
    launch_tags={"lt-1": MINE},
    vpcs={"subnet-1": "vpc-1", "subnet-2": "vpc-2"},
)


def tagged(tags: Mapping[str, str], *kinds: str) -> list[dict[str, Any]]:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": rows} for kind in kinds]


LAUNCH = {
    "ImageId": "ami-1",
    "InstanceType": "g5.xlarge",
    "SubnetId": "subnet-1",
    "SecurityGroupIds": ["sg-1"],
    "KeyName": "mine",
    "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "1"},
    "Placement": {"GroupName": "@sc-gpu"},
    "TagSpecifications": tagged(MINE, "instance", "volume"),
}


def fleet(kind: str, template: str = "lt-1") -> dict[str, Any]:
    config = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "2"},
        "Overrides": [{"InstanceType": kind, "SubnetId": "subnet-1"}],
    }
    return {"LaunchTemplateConfigs": [config]}


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("DescribeInstances", {}),
        ("RunInstances", LAUNCH),
        ("CreateFleet", fleet("g4dn.xlarge")),
        ("CreateLaunchTemplate", {"TagSpecifications": tagged(MINE, "launch-template")}),
        ("CreateLaunchTemplateVersion", {"LaunchTemplateId": "lt-1"}),
        ("DeleteLaunchTemplate", {"LaunchTemplateId": "lt-1"}),
        ("CreateTags", {"Resources": ["i-1", "lt-1"], "Tags": [{"Key": "Name", "Value": "x"}]}),
        ("StopInstances", {"InstanceIds": ["i-1"]}),
        ("TerminateInstances", {"InstanceIds": ["i-1"]}),
    ],
)
def test_it_may_do_what_its_cluster_needs(action: str, asked: dict[str, Any]) -> None:
    assert denied(policy(SCOPE), needs_of("ec2", action, asked, ESTATE)) is None


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("TerminateInstances", {"InstanceIds": ["i-1", "i-2"]}),
        ("StopInstances", {"InstanceIds": ["i-3"]}),
        ("StartInstances", {"InstanceIds": ["i-1"]}),
        ("RunInstances", LAUNCH | {"TagSpecifications": tagged(OTHER, "instance", "volume")}),
        ("RunInstances", LAUNCH | {"TagSpecifications": []}),
        ("RunInstances", LAUNCH | {"InstanceType": "p5.48xlarge"}),
        ("RunInstances", LAUNCH | {"SecurityGroupIds": ["sg-2"]}),
        ("RunInstances", LAUNCH | {"SubnetId": "subnet-2"}),
        ("RunInstances", LAUNCH | {"KeyName": "another"}),
        ("RunInstances", LAUNCH | {"LaunchTemplate": {"LaunchTemplateId": "lt-2"}}),
        ("CreateFleet", fleet("p5.48xlarge")),
        ("CreateFleet", fleet("g4dn.xlarge", "lt-2")),
        ("CreateLaunchTemplate", {"TagSpecifications": tagged(OTHER, "launch-template")}),
        ("CreateLaunchTemplate", {}),
        ("CreateLaunchTemplateVersion", {"LaunchTemplateId": "lt-2"}),
        ("DeleteLaunchTemplate", {"LaunchTemplateId": "lt-2"}),
        ("CreateTags", {"Resources": ["i-2"], "Tags": [{"Key": "Name", "Value": "x"}]}),
        ("CreateTags", {"Resources": ["i-3"], "Tags": [{"Key": TAG_CLUSTER, "Value": "gpu"}]}),
        ("CreateTags", {"Resources": ["i-1"], "Tags": [{"Key": TAG_CLUSTER, "Value": "gpu2"}]}),
        ("CreateTags", {"Resources": ["sg-1"], "Tags": [{"Key": "Name", "Value": "x"}]}),
        ("AuthorizeSecurityGroupIngress", {"GroupId": "sg-1"}),
        ("AssociateIamInstanceProfile", {"InstanceId": "i-1"}),
        ("ModifyInstanceAttribute", {"InstanceId": "i-1"}),
    ],
)
def test_it_may_not_do_more(action: str, asked: dict[str, Any]) -> None:
    assert denied(policy(SCOPE), needs_of("ec2", action, asked, ESTATE)) is not None


def test_it_reads_the_parameters_of_its_images_only() -> None:
    asked = {"Names": ["/aws/service/image", "/own/image"]}
    assert denied(policy(SCOPE), needs_of("ssm", "GetParameters", asked, ESTATE)) is None
    secret = needs_of("ssm", "GetParameter", {"Name": "/own/secret"}, ESTATE)
    assert denied(policy(SCOPE), secret) is not None
    assert "ssm" not in json.dumps(policy(replace(SCOPE, parameters=())))


def test_it_passes_a_role_only_if_its_nodes_have_one() -> None:
    role = "arn:aws:iam::123456789012:role/s3"
    to_ec2 = {"iam:PassedToService": "ec2.amazonaws.com"}
    need = Need(action="iam:PassRole", resource=role, context=to_ec2)
    assert not allows(policy(SCOPE), need)
    given = policy(replace(SCOPE, profile_role=role))
    assert allows(given, need)
    assert not allows(given, replace(need, resource=f"{role}2"))
    assert not allows(given, replace(need, context={"iam:PassedToService": "lambda"}))


def test_other_partitions_have_their_own_arns_and_the_document_fits() -> None:
    text = json.dumps(policy(replace(SCOPE, partition="aws-cn")))
    assert "arn:aws:" not in text
    long = replace(SCOPE, cluster="x" * 100, types=[f"g5.{n}xlarge" for n in range(20)])
    assert len(json.dumps(policy(long), separators=(",", ":"))) < 10240  # IAM's limit for a role
    assert ARN.startswith("arn:aws:ec2")
