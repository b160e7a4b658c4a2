"""Roles of instances in the fake EC2: their credentials, and what their policies allow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from tests.testbed.policies import Estate, denied, needs_of

ACCOUNT = "123456789012"
REGION = "us-east-1"
_KEY = re.compile(r"Credential=ASIA([0-9a-f]+)/")


def role_of(instance: str, region: str) -> str:
    """Return the role of an instance; empty without one."""
    associations = ec2_backends[ACCOUNT][region].iam_instance_profile_associations.values()
    for association in associations:
        if association.instance.id == instance:
            name = association.iam_instance_profile.name
            profile = iam_backends[ACCOUNT]["aws"].get_instance_profile(name)
            return profile.roles[0].name if profile.roles else ""
    return ""


def credentials(instance: str) -> dict[str, str]:
    """Return the credentials of an instance in the form of the metadata service."""
    return {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": f"ASIA{instance.removeprefix('i-')}",
        "SecretAccessKey": "of-the-role",
        "Token": "of-the-role",
        "LastUpdated": "2026-01-01T00:00:00Z",
        "Expiration": "2036-01-01T00:00:00Z",
    }


def authorize(response: Any, action: str, region: str) -> None:
    """Raise the error of EC2 if a request is one of an instance whose role does not allow it."""
    found = _KEY.search(response.headers.get("Authorization", ""))
    if not found:
        return
    instance = f"i-{found[1]}"
    policies = _policies(instance, region)
    asked = dict(response.params or {})
    needs = needs_of(response.service_name, action, asked, _estate(region))
    missing = denied(policies, needs)
    if missing is not None:
        raise EC2ClientError(
            "UnauthorizedOperation",
            f"User {instance} is not authorized to perform: {missing.action} "
            f"on resource: {missing.resource}",
        )


def _policies(instance: str, region: str) -> dict[str, Any]:
    name = role_of(instance, region)
    role = iam_backends[ACCOUNT]["aws"].get_role(name) if name else None
    texts = role.policies.values() if role else []
    return {"Statement": [row for text in texts for row in json.loads(text)["Statement"]]}


def _estate(region: str) -> Estate:
    backend = ec2_backends[ACCOUNT][region]
    ids = [each.id for each in backend.all_instances()]
    ids += [*backend.launch_templates, *backend.volumes]
    tags: dict[str, Mapping[str, str]] = {}
    for id in ids:
        tags[id] = {
            row["key"]: row["value"] for row in backend.describe_tags({"resource-id": [id]})
        }
    launch = {
        id: {
            tag["Key"]: tag["Value"]
            for row in template.latest_version().data.get("TagSpecifications", ())
            if row["ResourceType"] == "instance"
            for tag in row["Tags"]
        }
        for id, template in backend.launch_templates.items()
    }
    vpcs = {id: row.vpc_id for rows in backend.subnets.values() for id, row in rows.items()}
    return Estate(tags=tags, launch_tags=launch, vpcs=vpcs)
