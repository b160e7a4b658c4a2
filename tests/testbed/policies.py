"""Evaluate an IAM policy for the requests that starcluster sends; knows the keys that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

ARN = "arn:aws:ec2:us-east-1:123456789012:"
AMAZON = "arn:aws:ec2:us-east-1::"
_KINDS = {"i-": "instance", "vol": "volume", "lt-": "launch-template", "sg-": "security-group"}


@dataclass(frozen=True, kw_only=True)
class Need:
    """One permission that a request needs; ``context`` has the condition keys."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Estate:
    """What exists in the account.

    Attributes:
        tags: Of each resource, by id.
        launch_tags: Of the instances of each launch template, by id.
        vpcs: VPC of each subnet.
    """

    tags: Mapping[str, Mapping[str, str]]
    launch_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    vpcs: Mapping[str, str] = field(default_factory=dict)


def denied(policy: Mapping[str, Any], needs: Iterable[Need]) -> Need | None:
    """Return the first permission that a policy does not give."""
    return next((need for need in needs if not allows(policy, need)), None)


def allows(policy: Mapping[str, Any], need: Need) -> bool:
    """Return whether a policy of Allow statements gives a permission."""
    assert all(each["Effect"] == "Allow" for each in policy["Statement"])
    return any(_matches(statement, need) for statement in policy["Statement"])


def _matches(statement: Mapping[str, Any], need: Need) -> bool:
    actions, resources = _list(statement["Action"]), _list(statement["Resource"])
    return (
        any(fnmatchcase(need.action.lower(), action.lower()) for action in actions)
        and any(fnmatchcase(need.resource, resource) for resource in resources)
        and all(
            _holds(operator, need.context.get(key), _list(wanted))
            for operator, rows in statement.get("Condition", {}).items()
            for key, wanted in rows.items()
        )
    )


def _holds(operator: str, has: str | None, wanted: list[str]) -> bool:
    if operator.endswith("IfExists") and has is None:
        return True
    kinds = ("StringEquals", "StringEqualsIfExists", "ArnEquals")
    assert operator in (*kinds, "StringLike"), operator
    if has is None:
        return False
    return any(has == text if operator in kinds else fnmatchcase(has, text) for text in wanted)


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def needs_of(service: str, action: str, asked: Mapping[str, Any], estate: Estate) -> Iterator[Need]:
    """Yield the permissions of a request, as AWS's authorization reference lists them."""
    name = f"{service}:{action}"
    if service == "ssm":
        for path in asked.get("Names", [asked.get("Name", "")]):
            account = "" if path.startswith("/aws/") else "123456789012"
            yield Need(action=name, resource=f"arn:aws:ssm:us-east-1:{account}:parameter{path}")
    elif action in ("RunInstances", "CreateFleet"):
        yield from _launch(name, asked, estate)
    elif action == "CreateLaunchTemplate":
        yield from _made(name, action, "launch-template/*", _tags(asked, "launch-template"))
    elif action in ("CreateLaunchTemplateVersion", "DeleteLaunchTemplate"):
        yield _existing(name, asked["LaunchTemplateId"], estate)
    elif action == "CreateTags":
        new = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in asked["Tags"]}
        for id in asked["Resources"]:
            need = _existing(name, id, estate)
            yield Need(action=name, resource=need.resource, context={**need.context, **new})
    elif action in ("TerminateInstances", "StopInstances", "StartInstances", "RebootInstances"):
        for id in asked["InstanceIds"]:
            yield _existing(name, id, estate)
    else:
        yield Need(action=name, resource="*")


def _launch(name: str, asked: Mapping[str, Any], estate: Estate) -> Iterator[Need]:
    template = asked.get("LaunchTemplate", {}).get("LaunchTemplateId", "")
    types = [asked.get("InstanceType", "")]
    subnets = [asked.get("SubnetId", "subnet-1")]
    tags = _tags(asked, "instance")
    if name.endswith("CreateFleet"):
        (config,) = asked["LaunchTemplateConfigs"]
        template = config["LaunchTemplateSpecification"]["LaunchTemplateId"]
        types = [each["InstanceType"] for each in config["Overrides"]]
        subnets = [each.get("SubnetId", "subnet-1") for each in config["Overrides"]]
        tags = estate.launch_tags.get(template, {})
        yield Need(action=name, resource=f"{ARN}fleet/*")
    if template:
        yield _existing(name, template, estate)
    request = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    for kind in types:
        context = {**request, "ec2:InstanceType": kind}
        yield Need(action=name, resource=f"{ARN}instance/*", context=context)
    yield Need(action=name, resource=f"{ARN}volume/*", context=request)
    for subnet in subnets:
        vpc = {"ec2:Vpc": f"{ARN}vpc/{estate.vpcs.get(subnet, 'vpc-1')}"}
        yield Need(action=name, resource=f"{ARN}subnet/{subnet}", context=vpc)
    yield Need(action=name, resource=f"{AMAZON}image/{asked.get('ImageId', 'ami-1')}")
    yield Need(action=name, resource=f"{ARN}network-interface/*")
    for group in asked.get("SecurityGroupIds", ()):
        yield Need(action=name, resource=f"{ARN}security-group/{group}")
    if "KeyName" in asked:
        yield Need(action=name, resource=f"{ARN}key-pair/{asked['KeyName']}")
    if placement := asked.get("Placement", {}).get("GroupName"):
        yield Need(action=name, resource=f"{ARN}placement-group/{placement}")
    if tags:
        creating = {**request, "ec2:CreateAction": name.partition(":")[2]}
        for kind in ("instance", "volume"):
            yield Need(action="ec2:CreateTags", resource=f"{ARN}{kind}/*", context=creating)


def _made(name: str, action: str, resource: str, tags: Mapping[str, str]) -> Iterator[Need]:
    request = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    yield Need(action=name, resource=f"{ARN}{resource}", context=request)
    if tags:
        context = {**request, "ec2:CreateAction": action}
        yield Need(action="ec2:CreateTags", resource=f"{ARN}{resource}", context=context)


def _existing(name: str, id: str, estate: Estate) -> Need:
    kind = next((kind for start, kind in _KINDS.items() if id.startswith(start)), "other")
    context = {f"aws:ResourceTag/{k}": v for k, v in estate.tags.get(id, {}).items()}
    return Need(action=name, resource=f"{ARN}{kind}/{id}", context=context)


def _tags(asked: Mapping[str, Any], kind: str) -> dict[str, str]:
    for row in asked.get("TagSpecifications") or ():
        if row["ResourceType"] == kind:
            return {tag["Key"]: tag["Value"] for tag in row["Tags"]}
    return {}
