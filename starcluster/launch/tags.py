"""The tags of what is created for a cluster; no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from starcluster.config.template import Template
from starcluster.errors import InputError
from starcluster.launch.origin import Origin, origin_tags
from starcluster.model import OWN_TAGS, TAG_CLUSTER, TAG_LETTERS, TAG_NAME, TAG_VERSION

VERSION = "1"
"""Version of the format of the tags."""
TAG_DESCRIPTION = "starcluster:description"
_MOST = 50  # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
_LATER = 3  # host key, alias, and aliases of the launch


def instance_tags(
    cluster: str, template: Template, origin: Origin, description: str = ""
) -> dict[str, str]:
    """Return the tags that all instances of a launch share.

    Raises:
        InputError: The tags are too long, or more than AWS allows.
    """
    if len(description) > TAG_LETTERS:
        raise InputError(
            f"the description is too long: {len(description)} characters, "
            f"a tag can have {TAG_LETTERS}",
            "Shorten it: -d TEXT",
        )
    own = {
        TAG_CLUSTER: cluster,
        TAG_VERSION: VERSION,
        TAG_NAME: cluster,
        **origin_tags(origin),
    }
    if description:
        own[TAG_DESCRIPTION] = description
    count = len(template.tags) + len(own) + _LATER
    if count > _MOST:
        raise InputError(
            f"an instance would have {count} tags, AWS allows {_MOST}: "
            f"{len(template.tags)} of the key tags, the others of starcluster",
            "Shorten tags, or set options in the template instead of on the command line.",
        )
    return {**dict(template.tags), **own}


def cluster_tags(cluster: str, template: Template) -> dict[str, str]:
    """Return the tags of all that belongs to a cluster and is not an instance or its disk."""
    return {**dict(template.tags), TAG_CLUSTER: cluster}


def users_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return those of ``tags`` that starcluster and AWS do not set."""
    return {
        key: value
        for key, value in tags.items()
        if key != TAG_NAME and not key.startswith((OWN_TAGS, "aws:"))
    }
