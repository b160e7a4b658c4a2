"""The permissions of a balancer on the master: those that its own cluster needs; no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starcluster.model import TAG_CLUSTER, group_name

Statement = dict[str, Any]
_LOOK = (
    "ec2:Describe*",
    "ec2:GetSpotPlacementScores",
    "pricing:GetProducts",
    "elasticfilesystem:Describe*",
    "fsx:Describe*",
    "resource-groups:ListGroupResources",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the policy of a cluster names.

    Attributes:
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        account: Number of the account.
        group: Id of the security group of the cluster.
        types: Instance types that new nodes can have.
        parameters: Names of the SSM parameters of its images, which begin with ``/``.
        buckets: Names of the S3 buckets that nodes mount.
        profile_role: ARN of the role that new nodes get; empty for none.
    """

    partition: str
    region: str
    account: str
    cluster: str
    group: str
    vpc: str
    keyname: str
    types: Sequence[str]
    parameters: Sequence[str] = ()
    buckets: Sequence[str] = ()
    profile_role: str = ""

    def arn(self, resource: str, *, amazon: bool = False) -> str:
        """Return the ARN of a resource of EC2; ``amazon`` for any account."""
        account = "" if amazon else self.account
        return f"arn:{self.partition}:ec2:{self.region}:{account}:{resource}"


def policy(scope: Scope) -> dict[str, Any]:
    """Return the policy document.

    AWS cannot limit requests that only read EC2. All other requests name this cluster in a tag or
    an ARN.
    """
    statements = [*_look(scope), *_launch(scope), *_tag(scope), _end(scope)]
    if scope.profile_role:
        statements.append(_pass_role(scope))
    return {"Version": "2012-10-17", "Statement": statements}


def policy_text(scope: Scope) -> str:
    """Return the policy document as JSON for people."""
    return json.dumps(policy(scope), indent=2)


def _allow(sid: str, actions: Sequence[str], resources: Any, **conditions: Any) -> Statement:
    statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}
    return statement | ({"Condition": conditions} if conditions else {})


def _look(scope: Scope) -> list[Statement]:
    found = [_allow("Look", _LOOK, "*")]
    if scope.buckets:
        buckets = [f"arn:{scope.partition}:s3:::{name}" for name in scope.buckets]
        found.append(_allow("LookForBuckets", ["s3:ListBucket"], buckets))
    if scope.parameters:
        arns = [_parameter(scope, name) for name in scope.parameters]
        found.append(_allow("LookUpImages", ["ssm:GetParameter", "ssm:GetParameters"], arns))
    return found


def _parameter(scope: Scope, name: str) -> str:
    account = "" if name.startswith("/aws/") else scope.account
    return f"arn:{scope.partition}:ssm:{scope.region}:{account}:parameter{name}"


def _launch(scope: Scope) -> list[Statement]:
    launch = ["ec2:RunInstances", "ec2:CreateFleet"]
    new = {f"aws:RequestTag/{TAG_CLUSTER}": scope.cluster}
    mine = {f"aws:ResourceTag/{TAG_CLUSTER}": scope.cluster}
    templates = scope.arn("launch-template/*")
    vpc = scope.arn(f"vpc/{scope.vpc}")
    others = [
        scope.arn("image/*", amazon=True),
        scope.arn("snapshot/*", amazon=True),
        scope.arn("network-interface/*"),
        scope.arn(f"security-group/{scope.group}"),
        scope.arn(f"key-pair/{scope.keyname}"),
        scope.arn(f"placement-group/{group_name(scope.cluster)}"),
        scope.arn("capacity-reservation/*"),
    ]
    return [
        _allow("Claim", ["ec2:CreateLaunchTemplate"], templates, StringEquals=new),
        _allow(
            "UseClaim",
            ["ec2:CreateLaunchTemplateVersion", "ec2:DeleteLaunchTemplate", *launch],
            templates,
            StringEquals=mine,
        ),
        _allow(
            "LaunchNodes",
            launch,
            scope.arn("instance/*"),
            StringEquals={**new, "ec2:InstanceType": sorted(scope.types)},
        ),
        _allow("LaunchDisks", launch, scope.arn("volume/*"), StringEquals=new),
        _allow("LaunchInVpc", launch, scope.arn("subnet/*"), ArnEquals={"ec2:Vpc": vpc}),
        _allow("LaunchWith", launch, others),
        _allow("LaunchFleet", ["ec2:CreateFleet"], scope.arn("fleet/*")),
    ]


def _tag(scope: Scope) -> list[Statement]:
    kinds = [scope.arn(f"{kind}/*") for kind in ("instance", "volume", "launch-template")]
    creators = ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]
    request, resource = f"aws:RequestTag/{TAG_CLUSTER}", f"aws:ResourceTag/{TAG_CLUSTER}"
    return [
        _allow(
            "TagNew",
            ["ec2:CreateTags"],
            kinds,
            StringEquals={request: scope.cluster, "ec2:CreateAction": creators},
        ),
        _allow(
            "TagMine",
            ["ec2:CreateTags"],
            kinds,
            StringEquals={resource: scope.cluster},
            StringEqualsIfExists={request: scope.cluster},
        ),
    ]


def _end(scope: Scope) -> Statement:
    return _allow(
        "StopAndEndNodes",
        ["ec2:StopInstances", "ec2:TerminateInstances"],
        scope.arn("instance/*"),
        StringEquals={f"aws:ResourceTag/{TAG_CLUSTER}": scope.cluster},
    )


def _pass_role(scope: Scope) -> Statement:
    return _allow(
        "GiveNodesTheirRole",
        ["iam:PassRole"],
        scope.profile_role,
        StringEquals={"iam:PassedToService": "ec2.amazonaws.com"},
    )
