"""Connect instances and fleets of moto to hosts of the test bed, with limited capacity."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.models.fleets import Fleet
from moto.ec2.models.instances import Instance
from moto.ec2.responses import EC2Response

from tests.testbed.machines import Hostless, Machines


def wrap(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a method by ``make(original)``."""
    setattr(owner, name, make(getattr(owner, name)))


def _default_subnet(backend: Any, zone: str | None) -> Any:
    found = [each for row in backend.subnets.values() for each in row.values()]
    defaults = [each for each in found if each.default_for_az == "true" or each.default_for_az]
    return min(
        (each for each in defaults if not zone or each.availability_zone == zone),
        key=lambda each: each.availability_zone,
    )


def _no_capacity(instance_type: str) -> EC2ClientError:
    return EC2ClientError(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone "
        "you requested.",
    )


def connect_instances(machines: Machines | Hostless) -> None:
    """Boot and kill the node of an instance when its state changes."""

    def start(original: Any) -> Any:
        def call(self: Any) -> Any:
            if self.state in ("pending", "running"):
                return self._state
            before = original(self)
            self.launch_time = utcnow()  # as AWS does
            machines.boot(self)
            return before

        return call

    def ending(end: Callable[[Any], None]) -> Any:
        def wrapped(original: Any) -> Any:
            def call(self: Any) -> Any:
                if self.state == "terminated":
                    return original(self)
                before = original(self)
                end(self)
                return before

            return call

        return wrapped

    wrap(EC2Backend, "run_instances", lambda original: _launching(machines, original))
    wrap(EC2Backend, "start_instances", lambda original: _from(original, _STARTABLE))
    wrap(EC2Backend, "stop_instances", lambda original: _from(original, _STOPPABLE))
    wrap(Instance, "start", start)
    wrap(Instance, "stop", ending(machines.lose))
    wrap(Instance, "terminate", ending(machines.remove))
    Instance.reboot = lambda self: machines.reboot(self)


_STARTABLE = ("pending", "running", "stopped")
_STOPPABLE = ("running", "stopping", "stopped")


def _from(original: Any, states: tuple[str, ...]) -> Any:
    """Refuse a request unless all instances are in one of ``states``, as AWS does."""

    def call(self: Any, instance_ids: list[str]) -> Any:
        for instance in self.get_multi_instances_by_id(instance_ids):
            if instance.state not in states:
                text = (
                    f"The instance '{instance.id}' is not in a state from which it can be changed."
                )
                raise EC2ClientError("IncorrectInstanceState", text)
        return original(self, instance_ids)

    return call


def _launching(machines: Machines | Hostless, original: Any) -> Any:
    def call(self: Any, image_id: str, count: int, *args: Any, **more: Any) -> Any:
        zone = more.get("placement")
        if not more.get("subnet_id") and not more.get("nics"):
            more["subnet_id"] = _default_subnet(self, zone).id
        if more.get("subnet_id"):
            zone = self.get_subnet(more["subnet_id"]).availability_zone
        market = "spot" if more.get("instance_market_options") else "on-demand"
        kind = more.get("instance_type", "")
        if not more.get("fleet_id") and machines.lacks(kind, zone or "", market):
            raise _no_capacity(kind)
        made = original(self, image_id, count, *args, **more)
        for number, instance in enumerate(made.instances):
            if more.get("lifecycle"):
                instance.lifecycle = more["lifecycle"]
            machines.boot(instance, number)
        return made

    return call


def connect_fleets(machines: Machines | Hostless) -> None:
    """Launch fleets from their whole template; fail for types without capacity."""

    def launch(self: Any, count: float, market: str) -> None:
        specs = []
        self.errors = getattr(self, "errors", [])
        for spec in self.launch_specs:
            zone = ""
            if spec.subnet_id:
                zone = self.ec2_backend.get_subnet(spec.subnet_id).availability_zone
            if machines.lacks(spec.instance_type, zone, market):
                self.errors.append((spec, market))
            else:
                specs.append(spec)
        if specs:
            _launch_of(self, specs[0], int(count), market)

    Fleet.create_on_demand_requests = lambda self, count: launch(self, count, "on-demand")
    Fleet.create_spot_requests = lambda self, count: launch(self, count, "spot")
    wrap(EC2Response, "create_fleet", _told_errors)


def _launch_of(fleet: Any, spec: Any, count: int, market: str) -> None:
    template = {
        "LaunchTemplateId": spec.launch_template_spec["LaunchTemplateId"],
        "Version": spec.launch_template_spec.get("Version", "1"),
    }
    backend = fleet.ec2_backend
    data = backend._get_template_from_args(template).data
    disks = copy.deepcopy(data.get("BlockDeviceMappings", []))
    for disk in disks:
        disk["Ebs"].setdefault("VolumeSize", 8)
    made = backend.run_instances(
        spec.image_id,
        count,
        spec.user_data,
        [],
        instance_type=spec.instance_type,
        is_instance_type_default=False,
        key_name=spec.key_name,
        subnet_id=spec.subnet_id,
        fleet_id=fleet.id,
        tags=spec.tag_specifications,
        launch_template=template,
        **({"block_device_mappings": disks} if disks else {}),
        lifecycle="spot" if market == "spot" else None,
    )
    for instance in made.instances:
        if market == "spot":
            fleet.spot_requests.append(SimpleNamespace(instance=instance, launch_spec=spec))
        else:
            row = {"id": made.id, "instance": instance, "launch_spec": spec}
            fleet.on_demand_instances.append(row)
    fleet.fulfilled_capacity += len(made.instances)


def _told_errors(original: Any) -> Any:
    def call(self: Any) -> ActionResult:
        made = original(self)
        fleet = self.ec2_backend.fleets[made.result["FleetId"]]
        made.result["Errors"] = [
            {
                "LaunchTemplateAndOverrides": {"Overrides": spec.overrides or {}},
                "Lifecycle": market,
                "ErrorCode": "InsufficientInstanceCapacity",
                "ErrorMessage": _no_capacity(spec.instance_type).message,
            }
            for spec, market in getattr(fleet, "errors", [])
        ]
        return made

    return call
