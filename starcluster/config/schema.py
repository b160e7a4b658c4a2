"""Every section and key of the config file: its type, its default and what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starcluster.config.syntax import expand
from starcluster.model import NodeType

Parser = Callable[[str], Any]

DEFAULT_IMAGE = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
DEFAULT_REGION = "us-east-1"
SHELLS = ("bash", "zsh", "csh", "ksh", "tcsh", "sh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key: how its text becomes a value.

    Attributes:
        parse: Raises ValueError with what is wanted.
        hidden: Whether the value must not be shown.
    """

    parse: Parser
    default: Any = None
    required: bool = False
    hidden: bool = False


def text(value: str) -> str:
    """Return ``value``, which is not empty."""
    if not value:
        raise ValueError("it is empty")
    return value


def boolean(value: str) -> bool:
    """Return true, yes, on, 1 as True and false, no, off, 0 as False."""
    words = {"true": True, "yes": True, "on": True, "1": True}
    words |= {"false": False, "no": False, "off": False, "0": False}
    try:
        return words[value.lower()]
    except KeyError:
        raise ValueError("give true or false") from None


def whole(least: int, most: int | None = None) -> Parser:
    """Return a parser of whole numbers in this range, ends included."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", value):
            raise ValueError("give a whole number")
        number = int(value)
        if number < least:
            raise ValueError(f"must be at least {least}")
        if most is not None and number > most:
            raise ValueError(f"must be at most {most}")
        return number

    return parse


def dollars(value: str) -> float:
    """Return an amount above 0."""
    try:
        amount = float(value.removeprefix("$"))
    except ValueError:
        raise ValueError("give dollars per hour, such as 0.35") from None
    if not 0 < amount < float("inf"):
        raise ValueError("must be above 0 dollars per hour")
    return amount


def names(value: str) -> tuple[str, ...]:
    """Return what stands between commas."""
    return tuple(part for part in (each.strip() for each in value.split(",")) if part)


def path(value: str) -> Path:
    """Return a path, ``~`` and ``$NAME`` filled in."""
    return expand(text(value))


def paths(value: str) -> tuple[Path, ...]:
    """Return paths that stand between commas."""
    return tuple(expand(part) for part in names(value))


def matching(pattern: str, wanted: str) -> Parser:
    """Return a parser of text that matches ``pattern`` whole."""

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(wanted)
        return value

    return parse


def one_of(*choices: str) -> Parser:
    """Return a parser of one of ``choices``."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"give one of {', '.join(choices)}")
        return value

    return parse


_INSTANCE_TYPE = r"[a-z][a-z0-9-]*\.[a-z0-9-]+"
instance_type = matching(_INSTANCE_TYPE, "give an instance type, such as g5.xlarge")


def instance_types(value: str) -> tuple[str, ...]:
    """Return instance types that stand between commas."""
    return tuple(instance_type(part) for part in names(value))


def node_types(value: str) -> tuple[NodeType, ...]:
    """Return the items of ``type[:image][:n], ..., default``."""
    items = names(value)
    if not items:
        raise ValueError("it is empty")
    found = [_node_type(item) for item in items]
    for item, node_type in zip(items[:-1], found[:-1], strict=True):
        if node_type.count is None:
            raise ValueError(f"'{item}' needs a number of nodes, {item}:2; only the last has none")
    if found[-1].count is not None:
        raise ValueError(f"the last item, '{items[-1]}', is for all other nodes: it has no number")
    return tuple(found)


def _node_type(item: str) -> NodeType:
    name, *rest = item.split(":")
    count: int | None = None
    if rest and re.fullmatch(r"-?\d+", rest[-1]):
        count = int(rest.pop())
        if count < 1:
            raise ValueError(f"'{item}': the number of nodes must be at least 1")
    if len(rest) > 1:
        raise ValueError(f"'{item}' is not type, type:image, type:n or type:image:n")
    image = rest[0] if rest else ""
    return NodeType(instance_type=instance_type(name), image_id=image, count=count)


_K = ConfigKey
_PORT = whole(-1, 65535)
USER_NAME = matching(r"[a-z_][a-z0-9_-]{0,31}", "give a user name: small letters, digits, - and _")

GLOBAL: Mapping[str, ConfigKey] = {
    "default_template": _K(parse=text, default=""),
    "enable_experimental": _K(parse=boolean, default=False),
    "refresh_interval": _K(parse=whole(1), default=30),
    "include": _K(parse=text, default=""),
}
AWS: Mapping[str, ConfigKey] = {
    "aws_access_key_id": _K(parse=text, default=""),
    "aws_secret_access_key": _K(parse=text, default="", hidden=True),
    "aws_session_token": _K(parse=text, default="", hidden=True),
    "aws_profile": _K(parse=text, default=""),
    "aws_user_id": _K(parse=text, default=""),
    "aws_region_name": _K(
        parse=matching(r"[a-z]{2,}(-[a-z]+)+-\d", "give a region, such as us-east-1"), default=""
    ),
    "aws_region_host": _K(parse=text, default=""),
    "aws_port": _K(parse=whole(1, 65535), default=None),
    "aws_is_secure": _K(parse=boolean, default=True),
    "aws_endpoint_url": _K(
        parse=matching(r"https?://\S+", "give an address with http:// or https://"), default=""
    ),
    "aws_proxy": _K(parse=text, default=""),
    "aws_proxy_port": _K(parse=whole(1, 65535), default=None),
    "aws_proxy_user": _K(parse=text, default=""),
    "aws_proxy_pass": _K(parse=text, default="", hidden=True),
    "aws_validate_certs": _K(parse=boolean, default=True),
}
KEY: Mapping[str, ConfigKey] = {"key_location": _K(parse=path, required=True)}
VOLUME: Mapping[str, ConfigKey] = {
    "volume_id": _K(
        parse=matching(r"vol-[0-9a-f]{8,17}", "give a volume's id, such as vol-0a1b2c3d"),
        required=True,
    ),
    "device": _K(parse=matching(r"/dev/[a-z0-9]+", "give a device, such as /dev/sdz"), default=""),
    "partition": _K(parse=whole(1), default=None),
    "mount_path": _K(parse=matching(r"/\S+", "give a directory, such as /data"), required=True),
}
PERMISSION: Mapping[str, ConfigKey] = {
    "ip_protocol": _K(parse=one_of("tcp", "udp", "icmp"), default="tcp"),
    "from_port": _K(parse=_PORT, required=True),
    "to_port": _K(parse=_PORT, required=True),
    "cidr_ip": _K(parse=text, default="0.0.0.0/0"),
}
PLUGIN: Mapping[str, ConfigKey] = {
    "setup_class": _K(
        parse=matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", "give module.Class"), required=True
    ),
}
CLUSTER: Mapping[str, ConfigKey] = {
    "extends": _K(parse=text, default=""),
    "keyname": _K(parse=text, required=True),
    "cluster_size": _K(parse=whole(1), required=True),
    "node_instance_type": _K(parse=node_types, required=True),
    "node_image_id": _K(parse=text, default=DEFAULT_IMAGE),
    "master_instance_type": _K(parse=instance_type, default=""),
    "master_image_id": _K(parse=text, default=""),
    "cluster_user": _K(parse=USER_NAME, default="sgeadmin"),
    "cluster_shell": _K(parse=one_of(*SHELLS), default="bash"),
    "availability_zone": _K(parse=names, default=()),
    "subnet_id": _K(parse=names, default=()),
    "fallback_instance_types": _K(parse=instance_types, default=()),
    "public_ips": _K(parse=boolean, default=None),
    "spot_bid": _K(parse=dollars, default=None),
    "force_spot_master": _K(parse=boolean, default=False),
    "volumes": _K(parse=names, default=()),
    "plugins": _K(parse=names, default=()),
    "permissions": _K(parse=names, default=()),
    "userdata_scripts": _K(parse=paths, default=()),
    "disable_queue": _K(parse=boolean, default=False),
    "disable_cloudinit": _K(parse=boolean, default=False),
    "dns_prefix": _K(parse=boolean, default=False),
    "root_volume_size": _K(parse=whole(1, 65536), default=None),
    "root_volume_encrypted": _K(parse=boolean, default=True),
    "placement_group": _K(parse=boolean, default=False),
    "max_hourly_cost": _K(parse=dollars, default=None),
}
SECTIONS: Mapping[str, Mapping[str, ConfigKey]] = {
    "global": GLOBAL,
    "aws info": AWS,
    "key": KEY,
    "volume": VOLUME,
    "permission": PERMISSION,
    "plugin": PLUGIN,
    "cluster": CLUSTER,
}
WITHOUT_NAME = ("global", "aws info")
# What files of the original may have and nothing here needs: read over.
OBSOLETE = frozenset({"aws_s3_host", "aws_s3_path", "ec2_cert", "ec2_private_key", "web_browser"})
