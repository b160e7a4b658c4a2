"""The aliases of launched instances, as tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starcluster.aws.aliases import packed
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.errors import AwsError
from starcluster.model import TAG_ALIAS, TAG_ALIASES, TAG_NAME
from starcluster.threadpool import ThreadPool

NAMED_IN_CONSOLE = 32
"""Largest launch whose nodes get individual names in AWS's console: each costs a request."""


def tags_of_node(cluster: str, alias: str) -> dict[str, str]:
    """Return the tags that make an instance the node ``alias`` of ``cluster``."""
    return {TAG_ALIAS: alias, TAG_NAME: f"{cluster}-{alias.removeprefix(f'{cluster}-')}"}


def tags_of_launch(cluster: str, aliases: Sequence[str]) -> dict[str, str]:
    """Return the tags that give all instances of one launch their aliases."""
    if len(aliases) == 1:
        return tags_of_node(cluster, aliases[0])
    text = packed(aliases)
    return {TAG_ALIASES: text} if text else {}


def name(
    ec2: Ec2, cluster: str, aliases: Sequence[str], made: Sequence[Instance]
) -> dict[str, Instance]:
    """Return launched instances by alias; tag those that the launch did not name."""
    there = {instance.alias: instance for instance in made if instance.alias in aliases}
    left = [alias for alias in aliases if alias not in there]
    there |= dict(zip(left, (instance for instance in made if not instance.alias), strict=False))
    many = len(made) > NAMED_IN_CONSOLE

    def tagged(alias: str, instance: Instance) -> Instance:
        tags = tags_of_node(cluster, alias)
        known = instance.alias == alias
        if known and (many or tags.items() <= instance.tags.items()):
            return instance
        try:
            ec2.tag([instance.id], tags)
        except AwsError:
            if not known:
                raise
        return replace(instance, tags={**instance.tags, **tags})

    return dict(
        zip(there, ThreadPool().map(tagged, list(there), list(there.values())), strict=True)
    )
