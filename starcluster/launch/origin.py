"""The template and options of a cluster, stored in the tags of its instances; no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from starcluster.errors import InputError
from starcluster.model import TAG_TEMPLATE

_TAG_LENGTH = 255
_TAG_PARTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The template of a cluster, and the keys that the command line overrides."""

    template: str
    overrides: Mapping[str, str] = field(default_factory=dict)


def origin_tags(origin: Origin) -> dict[str, str]:
    """Return the tags that store an origin; several, because a tag has at most 256 characters."""
    text = json.dumps([origin.template, dict(origin.overrides)], separators=(",", ":"))
    parts = [text[start : start + _TAG_LENGTH] for start in range(0, len(text), _TAG_LENGTH)]
    if len(parts) > _TAG_PARTS:
        raise InputError(
            "the options are too long for the tags of the nodes", "Set them in the template."
        )
    return {TAG_TEMPLATE + (f":{n}" if n else ""): part for n, part in enumerate(parts)}


def origin_of(tags: Mapping[str, str]) -> Origin | None:
    """Return the origin that tags store, or None."""
    names = [TAG_TEMPLATE, *(f"{TAG_TEMPLATE}:{number}" for number in range(1, _TAG_PARTS))]
    try:
        name, overrides = json.loads("".join(tags.get(name, "") for name in names))
    except ValueError:
        return None
    return Origin(template=str(name), overrides={str(k): str(v) for k, v in overrides.items()})
