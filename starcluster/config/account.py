"""Keys of ``[cluster]`` about resources of the AWS account, with their parsers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from starcluster.config.keys import setting
from starcluster.config.parsers import boolean, names
from starcluster.model import OWN_TAGS, TAG_LETTERS, TAG_NAME

_PROFILE_NAME = r"[\w+=,.@-]{1,128}"
_ARN = re.compile(r"arn:aws[\w-]*:iam::\d{12}:([\w-]+)/(?:[\x21-\x7e]*/)?([\w+=,.@-]+)", re.ASCII)


def instance_profile(value: str) -> str:
    """Return the name or the ARN of an instance profile."""
    if re.fullmatch(_PROFILE_NAME, value, re.ASCII):
        return value
    arn = _ARN.fullmatch(value)
    if arn and arn[1] == "role":
        raise ValueError(
            "this is a role; expected its instance profile, which this command lists: "
            f"aws iam list-instance-profiles-for-role --role-name {arn[2]}"
        )
    if not arn or arn[1] != "instance-profile":
        raise ValueError("expected the name or the ARN of an instance profile")
    return value


MOST_TAGS = 42
"""Of the 50 tags that AWS allows a resource, starcluster needs at least 8."""
_KEY_LETTERS = 128
# What all services of AWS accept; a comma separates tags.
_TAG_TEXT = re.compile(r"[\w \t+=._:/@-]*")


def check_tag(key: str, value: str) -> None:
    """Raise ValueError for a tag that AWS does not accept or that starcluster sets itself."""
    if not key or len(key) > _KEY_LETTERS:
        raise ValueError(f"a key has 1 to {_KEY_LETTERS} characters, not {len(key)}: '{key}'")
    if len(value) > TAG_LETTERS:
        raise ValueError(f"'{key}': a value has up to {TAG_LETTERS} characters, not {len(value)}")
    for text in (key, value):
        if not _TAG_TEXT.fullmatch(text):
            raise ValueError(f"'{text}': a tag has only letters, digits, spaces and +-=._:/@")
    if key.lower().startswith("aws:"):
        raise ValueError(f"'{key}': AWS reserves keys that start with aws:")
    if key == TAG_NAME or key.lower().startswith(OWN_TAGS):
        raise ValueError(f"'{key}': starcluster sets this tag")


def tags(value: str) -> tuple[tuple[str, str], ...]:
    """Return key and value of each item of ``KEY=VALUE, ...``."""
    found: dict[str, str] = {}
    for item in names(value):
        key, separator, text = (part.strip() for part in item.partition("="))
        if not separator:
            raise ValueError(f"'{item}': expected KEY=VALUE, separated by commas")
        if key in found:
            raise ValueError(f"duplicate key '{key}'")
        check_tag(key, text)
        found[key] = text
    if len(found) > MOST_TAGS:
        raise ValueError(
            f"{len(found)} tags, but only {MOST_TAGS} fit next to those of starcluster"
        )
    return tuple(found.items())


def efa(value: str) -> str:
    """Return ``true``, ``auto`` or ``false``."""
    if value.lower() == "auto":
        return "auto"
    try:
        return str(boolean(value)).lower()
    except ValueError:
        raise ValueError("expected true, auto or false") from None


_RESERVATION = r"cr-[0-9a-f]{8,17}"
_RESERVATION_ARN = rf"arn:aws[\w-]*:ec2:[\w-]+:\d{{12}}:capacity-reservation/({_RESERVATION})"
_GROUP_ARN = r"arn:aws[\w-]*:resource-groups:[\w-]+:\d{12}:group/[\w./-]+"
PREFERENCES = ("open", "none")


def capacity_reservation(value: str) -> str:
    """Return the id of a reservation, the ARN of a group of them, ``open`` or ``none``."""
    if found := re.fullmatch(_RESERVATION_ARN, value, re.ASCII):
        return found[1]
    forms = f"{_RESERVATION}|{_GROUP_ARN}|{'|'.join(PREFERENCES)}"
    if not re.fullmatch(forms, value, re.ASCII):
        raise ValueError("expected an id (cr-...), the ARN of a resource group, open or none")
    return value


def names_reservation(value: str) -> bool:
    """Return whether a value of ``capacity_reservation`` is an id or a group."""
    return bool(value) and value not in PREFERENCES


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKeys:
    """The keys; ``help`` of each describes the field."""

    instance_profile: str = field(
        default="",
        metadata=setting(
            instance_profile,
            "Launch all nodes with this IAM instance profile, a name or an ARN. Programs of root "
            "on a node then have the permissions of its role, e.g. for S3 or ECR; with "
            "``metadata_access = all``, all jobs.",
            example="starcluster-s3",
            unset="no role",
            option="--instance-profile NAME",
        ),
    )
    tags: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=setting(
            tags,
            "Set these tags, ``KEY=VALUE`` separated by commas, on all that is created: instances, "
            "volumes, network interfaces, spot requests, fleets, security and placement groups, "
            "launch templates, and images of the nodes. In the default template they are also for "
            "``createvolume`` and ``createkey``.",
            example="team=vision, cost-center=4711",
            unset="no tags but those of starcluster",
            option="--tags TAGS",
        ),
    )
    capacity_reservation: str = field(
        default="",
        metadata=setting(
            capacity_reservation,
            "Launch nodes in this capacity reservation or Capacity Block, an id, or in those of "
            "this resource group, an ARN: all nodes of its instance types. ``open`` uses any open "
            "reservation that matches, ``none`` uses no reservation.",
            example="cr-0123456789abcdef0",
            unset="the default of AWS, ``open``",
            option="--capacity-reservation ID",
        ),
    )
    efa: str = field(
        default="false",
        metadata=setting(
            efa,
            "Give nodes an Elastic Fabric Adapter on each network card, for training across "
            "nodes, and place them close together. ``true`` refuses instance types without EFA, "
            "``auto`` launches these without it.",
            example="auto",
            option="--efa true|auto",
        ),
    )
