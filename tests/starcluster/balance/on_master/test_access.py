"""The role of a master, against IAM and EC2 of moto over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import LaunchRequest, Place
from starcluster.balance.on_master.access import Access
from starcluster.cluster.cluster import Cluster
from starcluster.config.config import Config
from starcluster.errors import AwsError, ClusterError, NotFound, PermissionDenied
from starcluster.launch import role
from starcluster.launch.groups import remove_groups
from starcluster.launch.origin import Origin, origin_tags
from starcluster.model import TAG_ALIAS, TAG_CLUSTER, group_name
from tests.testbed.policies import Estate, denied, needs_of

ROLE = "starcluster-us-east-1-gpu"


@pytest.fixture
def cluster(ec2: Ec2, settings: Config) -> Cluster:
    ec2.create_security_group(
        group_name("gpu"), vpc=ec2.default_vpc(), description="nodes", tags={TAG_CLUSTER: "gpu"}
    )
    tags = {TAG_CLUSTER: "gpu", TAG_ALIAS: "master", **origin_tags(Origin(template="big"))}
    place = Place(instance_type="t3.micro")
    ec2.run(LaunchRequest(image_id="ami-785db401", count=1, places=(place,), tags=tags))
    return Cluster("gpu", ec2.instances(cluster="gpu"), ec2, settings)


@pytest.fixture(autouse=True)
def no_placement_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ec2, "placement_groups", lambda *_: [])  # moto does not know them


def policy_of(ec2: Ec2) -> dict[str, Any]:
    answer = ec2.call("iam", "GetRolePolicy", RoleName=ROLE, PolicyName="starcluster")
    found = answer["PolicyDocument"]
    return dict(json.loads(found) if isinstance(found, str) else found)


def test_a_master_gets_a_role_for_its_cluster_and_loses_it(ec2: Ec2, cluster: Cluster) -> None:
    access = Access(cluster)
    access.check()
    access.give()
    access.give()  # a second --install
    master = cluster.master.id
    has = ec2.association(master)
    assert has is not None
    assert has.profile == ROLE
    estate = Estate(tags={"i-1": {TAG_CLUSTER: "gpu"}, "i-2": {TAG_CLUSTER: "gpu2"}})
    for id, allowed in (("i-1", True), ("i-2", False)):
        needs = needs_of("ec2", "TerminateInstances", {"InstanceIds": [id]}, estate)
        assert (denied(policy_of(ec2), needs) is None) == allowed
    document = ec2.call("iam", "GetRole", RoleName=ROLE)["Role"]["AssumeRolePolicyDocument"]
    assert document["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert access.take() == [f"role {ROLE}"]
    assert ec2.association(master) is None
    with pytest.raises(NotFound):
        ec2.call("iam", "GetRole", RoleName=ROLE)
    assert access.take() == []
    access.give()
    assert ec2.association(master) is not None


@pytest.mark.parametrize("left", ["all", "profile", "role", "tag"])
def test_terminate_deletes_the_role_also_one_that_is_half_made(
    ec2: Ec2, cluster: Cluster, left: str
) -> None:
    access = Access(cluster)
    access.give()
    if left in ("profile", "tag"):
        ec2.call("iam", "DeleteRolePolicy", RoleName=ROLE, PolicyName="starcluster")
        profile = {"InstanceProfileName": ROLE}
        ec2.call("iam", "RemoveRoleFromInstanceProfile", RoleName=ROLE, **profile)
        ec2.call("iam", "DeleteRole", RoleName=ROLE)
    if left in ("role", "tag"):
        if left == "role":
            ec2.call(
                "iam", "RemoveRoleFromInstanceProfile", RoleName=ROLE, InstanceProfileName=ROLE
            )
        ec2.call("iam", "DeleteInstanceProfile", InstanceProfileName=ROLE)
    ec2.terminate([cluster.master.id])
    removed = remove_groups(ec2, "gpu")
    assert (f"role {ROLE}" in removed) == (left != "tag")
    assert not list(ec2.pages("iam", "ListRoles", "Roles", PathPrefix="/starcluster/"))
    prefix = {"PathPrefix": "/starcluster/"}
    assert not list(ec2.pages("iam", "ListInstanceProfiles", "InstanceProfiles", **prefix))
    assert not ec2.security_groups(group_name("gpu"))


def test_a_role_of_somebody_else_is_neither_changed_nor_deleted(ec2: Ec2, cluster: Cluster) -> None:
    ec2.call("iam", "CreateRole", RoleName=ROLE, AssumeRolePolicyDocument="{}")
    access = Access(cluster)
    with pytest.raises(ClusterError, match=ROLE):
        access.give()
    ec2.terminate([cluster.master.id])
    remove_groups(ec2, "gpu")
    assert ec2.call("iam", "GetRole", RoleName=ROLE)


def test_without_permission_for_roles_the_policy_is_printed_and_one_can_be_named(
    ec2: Ec2, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ec2.call("iam", "CreateInstanceProfile", InstanceProfileName="admins")
    original = Ec2.call

    def call(self: Ec2, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        if service == "iam":
            raise PermissionDenied("no", code="AccessDenied", operation=operation)
        return original(self, service, operation, **arguments)

    monkeypatch.setattr(Ec2, "call", call)
    with pytest.raises(PermissionDenied) as caught:
        Access(cluster).give()
    assert '"aws:ResourceTag/starcluster:cluster": "gpu"' in caught.value.fix
    assert "--instance-profile NAME gpu" in caught.value.fix
    named = Access(cluster, "admins")
    named.check()
    named.give()
    has = ec2.association(cluster.master.id)
    assert has is not None
    assert has.profile == "admins"
    with pytest.raises(ClusterError, match="admins") as other:
        Access(cluster).check()
    assert "--instance-profile admins gpu" in other.value.fix
    named.take()
    assert ec2.association(cluster.master.id) is not None


def test_a_new_profile_is_retried_until_ec2_knows_it(
    ec2: Ec2, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = ["InvalidParameterValue", "InvalidParameterValue", "IncorrectState"]
    original = Ec2.associate

    def associate(self: Ec2, instance: str, profile: str) -> None:
        if codes:
            raise AwsError("not yet", code=codes.pop(0))
        original(self, instance, profile)

    monkeypatch.setattr(Ec2, "associate", associate)
    pauses: list[float] = []
    Access(cluster, sleep=pauses.append).give()
    assert len(pauses) == 3
    codes += ["InvalidParameterValue"] * 5
    Access(cluster).take()
    with pytest.raises(AwsError, match="not yet"):
        Access(cluster, pauses_s=(0.0,), sleep=pauses.append).give()


def test_names_of_roles_are_unique_and_short() -> None:
    long = "c" * 100
    names = {role.role_name("us-east-1", long + end) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 64 for name in names)
    assert role.role_name("us-east-1", "gpu") != role.role_name("us-east-2", "gpu")
