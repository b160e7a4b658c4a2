"""Launch templates and security groups that the fake EC2 lists late, or after their deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models import EC2Backend
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.utils import generic_filter

from tests.testbed.consistency import Consistency
from tests.testbed.moto_instances import wrap

Matches = Callable[[Any, Any], bool]


def connect_late_lists(lagging: Consistency) -> None:
    """Let lists of launch templates and security groups lag behind changes."""
    templates, groups = Deleted(lagging, _is_template), Deleted(lagging, _is_group)
    for make in ("create_security_group", "create_launch_template"):
        wrap(EC2Backend, make, lambda original: _made(lagging, original))
    wrap(EC2Backend, "create_tags", lambda original: _tagged(lagging, original))
    wrap(EC2Backend, "delete_launch_template", templates.deleting)
    wrap(EC2Backend, "_delete_security_group", groups.deleting)
    wrap(EC2Backend, "describe_launch_templates", lambda original: _listed(templates, original))
    wrap(EC2Backend, "describe_security_groups", lambda original: _listed(groups, original))


class Deleted:
    """Deleted resources of one kind, which lists can still have."""

    def __init__(self, lagging: Consistency, matches: Matches) -> None:
        self.lagging, self._matches = lagging, matches
        self._gone: dict[str, Any] = {}

    def deleting(self, original: Any) -> Any:
        """Keep what the original function deletes."""

        def call(backend: Any, first: Any, id: str) -> Any:
            found = backend.launch_templates.get(id) or backend.get_security_group_from_id(id)
            answer = original(backend, first, id)
            if found is not None:
                self.lagging.changed(id, "gone")
                self._gone[id] = found
            return answer

        return call

    def still_listed(self, filters: Any) -> list[Any]:
        """Return those that this call's list still has."""
        late = [each for id, each in self._gone.items() if not self.lagging.lists(id, "gone")]
        return [each for each in late if self._matches(each, filters)]


class OldTags:
    """A launch template with earlier tags."""

    def __init__(self, real: LaunchTemplate, tags: list[dict[str, str]]) -> None:
        self._real, self.tags = real, tags

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _is_template(template: Any, filters: Any) -> bool:
    return bool(generic_filter(filters or {}, [template]))


def _is_group(group: Any, filters: Any) -> bool:
    return bool(group.matches_filters(filters or {}))


def _made(lagging: Consistency, original: Any) -> Any:
    def call(self: Any, *args: Any, **more: Any) -> Any:
        made = original(self, *args, **more)
        lagging.changed(made.id)
        return made

    return call


def _tagged(lagging: Consistency, original: Any) -> Any:
    def call(self: Any, resource_ids: list[str], tags: dict[str, str]) -> Any:
        for id in resource_ids:
            if id in self.launch_templates:
                lagging.tags_change(id, self.launch_templates[id].get_tags())
        return original(self, resource_ids, tags)

    return call


def _listed(deleted: Deleted, original: Any) -> Any:
    lagging = deleted.lagging

    def call(self: Any, *args: Any, **more: Any) -> Any:
        found = [each for each in original(self, *args, **more) if lagging.lists(each.id)]
        filters = more.get("filters") or (args[-1] if args else None)
        seen = [
            each if (tags := lagging.old_tags(each.id)) is None else OldTags(each, tags)
            for each in found
        ]
        return seen + deleted.still_listed(filters)

    return call
