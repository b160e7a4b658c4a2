"""Connect the eventual consistency of the fake EC2 to moto, and idempotent launches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.models.instances import Instance, StateReason
from moto.ec2.utils import filter_reservations

from tests.testbed.consistency import Consistency
from tests.testbed.moto_instances import wrap
from tests.testbed.moto_late import connect_late_lists
from tests.testbed.moto_server import connect_default_vpc, fix_templates

_READS = ("Describe", "Get")


def connect_consistency(lagging: Consistency) -> None:
    """Let lists lag behind what they list."""
    wrap(EC2Backend, "describe_instances", lambda original: _instances(lagging))
    wrap(EC2Backend, "get_reservations_by_instance_ids", lambda original: _by_id(lagging))
    wrap(EC2Backend, "run_instances", lambda original: _born(lagging, original))
    for change in ("start", "stop", "terminate"):
        wrap(Instance, change, lambda original: _changing(lagging, original))
    for action in ("terminate_instances", "stop_instances", "start_instances"):
        wrap(EC2Backend, action, lambda original: _known(lagging, original))
    connect_late_lists(lagging)
    wrap(EC2Backend, "_get_template_from_args", _gone_template)
    fix_templates()
    connect_default_vpc()


def _instances(lagging: Consistency) -> Any:
    def call(self: Any, filters: Any = None) -> Any:
        return filter_reservations(lagging.view(self.all_reservations()), filters or {})

    return call


def _by_id(lagging: Consistency) -> Any:
    def call(self: Any, instance_ids: list[str], filters: Any = None) -> Any:
        found = lagging.view(self.all_reservations())
        for reservation in found:
            kept = [each for each in reservation.instances if each.id in instance_ids]
            reservation.instances = kept
        seen = {each.id for reservation in found for each in reservation.instances}
        if missing := [id for id in instance_ids if id not in seen]:
            text = f"The instance ID '{missing[0]}' does not exist"
            raise EC2ClientError("InvalidInstanceID.NotFound", text)
        return filter_reservations([each for each in found if each.instances], filters or {})

    return call


def _born(lagging: Consistency, original: Any) -> Any:
    def call(self: Any, *args: Any, **more: Any) -> Any:
        made = original(self, *args, **more)
        for instance in made.instances:
            lagging.changed(instance.id)
            lagging.changed(instance.id, "tags")
            if after_s := lagging.reclaims() if more.get("lifecycle") == "spot" else 0.0:
                threading.Timer(after_s, _reclaim, [instance]).start()
        return made

    return call


def _reclaim(instance: Any) -> None:
    instance.terminate()
    code = "Server.SpotInstanceTermination"
    instance.state_reason = StateReason(f"{code}: Spot instance termination", code)


def _changing(lagging: Consistency, original: Any) -> Any:
    def call(self: Any) -> Any:
        lagging.state_changes(self)
        return original(self)

    return call


def _known(lagging: Consistency, original: Any) -> Any:
    def call(self: Any, instance_ids: list[str]) -> Any:
        lagging.require(instance_ids, "InvalidInstanceID.NotFound")
        return original(self, instance_ids)

    return call


def _gone_template(original: Any) -> Any:
    def call(self: Any, asked: dict[str, Any]) -> Any:
        id = asked.get("LaunchTemplateId")
        if id not in self.launch_templates:
            text = f"The specified launch template, with template ID {id}, does not exist."
            raise EC2ClientError("InvalidLaunchTemplateId.NotFound", text)
        template = self.launch_templates[id]
        return template.get_version(asked.get("Version", template.default_version_number))

    return call


class OneAtATime:
    """Changes one after another; a launch with the token of an earlier one has its response."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._answers: dict[str, tuple[str, Any]] = {}

    def call(self, action: str, parameters: Mapping[str, Any], work: Callable[[], Any]) -> Any:
        """Return ``work()``, or the response to an earlier request with the same token."""
        if action.startswith(_READS):
            return work()
        with self._lock:
            token = parameters.get("ClientToken")
            if not token or parameters.get("DryRun"):
                return work()
            asked = json.dumps(dict(parameters), default=str, sort_keys=True)
            if token in self._answers:
                before, answer = self._answers[token]
                if before == asked:
                    return answer
                return refused("IdempotentParameterMismatch")
            answer = work()
            if int(answer[0]) < 400:
                self._answers[token] = (asked, answer)
            return answer


def refused(code: str, status: int = 400) -> tuple[int, dict[str, str], str]:
    """Return a response of EC2 with an error."""
    body = f"<Response><Errors><Error><Code>{code}</Code><Message>{code}</Message></Error></Errors>"
    return status, {}, f"{body}</Response>"
