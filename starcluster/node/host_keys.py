"""The SSH host keys that an instance may present: one, or two while its key is replaced."""

from __future__ import annotations

from starcluster.aws.model import Instance
from starcluster.model import TAG_HOST_KEY

_SEPARATOR = ","
_replaced: dict[str, str] = {}  # by instance, because AWS can list the old tag for some seconds


def host_keys(instance: Instance) -> str:
    """Return the keys of an instance, separated by commas; empty if its tags have none."""
    tag = instance.tags.get(TAG_HOST_KEY, "")
    return _replaced.get(instance.id, tag) if tag else ""


def remember(id: str, keys: str) -> None:
    """Let this process expect ``keys`` of an instance from now on."""
    _replaced[id] = keys


def split(keys: str) -> list[str]:
    """Return each key as ``TYPE BASE64``; the first one is the newest."""
    return [" ".join(key.split()[:2]) for key in keys.split(_SEPARATOR)]


def joined(*keys: str) -> str:
    """Return keys as the text of the tag, each once."""
    return _SEPARATOR.join(dict.fromkeys(keys))
