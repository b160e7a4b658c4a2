"""Names of a cluster: its tags, its security group and its master's alias."""

from __future__ import annotations

OWN_TAGS = "starcluster:"
"""First letters of the keys of all tags that starcluster sets, except for ``Name``."""
TAG_LETTERS = 256
"""Most characters of the value of a tag."""
TAG_CLUSTER = "starcluster:cluster"
TAG_ALIAS = "starcluster:alias"
TAG_ALIASES = "starcluster:aliases"
TAG_TEMPLATE = "starcluster:template"
TAG_VERSION = "starcluster:version"
TAG_NAME = "Name"
TAG_HOST_KEY = "starcluster:host_key"
MASTER = "master"


def group_name(cluster: str) -> str:
    """Return the name of the security group of ``cluster``."""
    return f"@sc-{cluster}"


def is_master(alias: str) -> bool:
    """Return whether ``alias`` is a master; with dns_prefix, the cluster name precedes it."""
    return alias == MASTER or alias.endswith(f"-{MASTER}")
