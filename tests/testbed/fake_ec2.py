"""EC2 as a process of its own: moto over HTTP, whose instances are nodes of the test bed.

``python -m tests.testbed.fake_ec2 SETTINGS`` runs in the test bed's network until it is killed; see
``Cloud``, which starts it. What moto lacks and a client may meet is added here.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # 1301 of them: 1.5 s a DescribeImages
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_KEYPAIR_VALIDATION"] = "true"

from cryptography.hazmat.primitives import serialization
from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.fleets import Fleet
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance
from moto.ec2.responses import EC2Response
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer

from . import cloud_init
from .fabric import Fabric, Node

ACCOUNT = "123456789012"
IMAGE = "ami-0dee9ba5e0000001a"  # it has Grid Engine, NFS and OpenSSH
PRICES = {"g4dn.xlarge": 0.526, "g4dn.12xlarge": 3.912, "m5.large": 0.096}  # dollars per hour
_UNLOGGED = {"UserData", "PublicKeyMaterial"}


class Machines:
    """The nodes of all instances; calls of EC2 that concern them come here."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.folder = Path(settings["folder"])
        self.fabric = Fabric.of(
            settings["pid"], Path(settings["work"]), map(Path, settings["binds"]), settings["net"]
        )
        self.profile: str = settings["profile"]
        self.boot_s: float = settings["boot_s"]
        self.nodes: dict[str, Node] = {}
        self._facts: dict[str, cloud_init.Facts] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._log = threading.Lock()

    def log(self, action: str, parameters: dict[str, Any], error: str = "") -> None:
        """Append a call to the record of what clients asked."""
        shown = {key: value for key, value in parameters.items() if key not in _UNLOGGED}
        row = {"at": time.time(), "action": action, "parameters": shown, "error": error}
        with self._log, (self.folder / "calls.jsonl").open("a") as log:
            log.write(json.dumps(row, default=str) + "\n")

    def boot(self, instance: Any) -> None:
        """Let an instance come up, in its own time."""
        _state(instance, "pending", 0)
        self._locks.setdefault(instance.id, threading.Lock())
        threading.Thread(target=self._boot, args=(instance,), daemon=True).start()

    def _boot(self, instance: Any) -> None:
        fault = self.fault("boot")
        with self._locks[instance.id]:
            first = instance.id not in self.nodes
            if first:
                self._make(instance)
            node = self.nodes[instance.id]
            node.public_ip = instance.public_ip or ""
            time.sleep(self.boot_s)
            if instance.state != "pending":  # stopped or terminated meanwhile
                return
            node.boot()
            if fault.get("how") != "no-ssh":
                cloud_init.start(node, self._facts[instance.id], first=first)
            self._publish(instance, node)
            if instance.state == "pending":  # not terminated in the middle of it
                _state(instance, "running", 16)

    def _make(self, instance: Any) -> None:
        key = instance.ec2_backend.key_pairs.get(instance.key_name)
        material = getattr(key, "material_public", b"") or b""
        data = instance.user_data
        gpus = INSTANCE_TYPES.get(instance.instance_type, {}).get("GpuInfo", {}).get("Gpus", [])
        self._facts[instance.id] = cloud_init.Facts(
            id=instance.id,
            public_key=material.decode() if isinstance(material, bytes) else material,
            user_data=base64.b64decode(data.as_bytes()) if data else b"",
            gpus=sum(each["Count"] for each in gpus),
            profile=self.profile,
        )
        name = f"ip-{instance.private_ip.replace('.', '-')}"
        self.nodes[instance.id] = node = Node(self.fabric, name, instance.private_ip)
        cloud_init.prepare(node, self._facts[instance.id])

    def _publish(self, instance: Any, node: Node) -> None:
        row = {"name": node.name, "ip": node.ip, "public_ip": node.public_ip, "pid": node.pid}
        beside = self.folder / "nodes" / f".{instance.id}"
        beside.write_text(json.dumps(row))
        beside.replace(beside.with_name(instance.id))

    def lose(self, instance: Any) -> None:
        """End all that runs on an instance; its disk stays."""
        with self._locks[instance.id]:
            node = self.nodes.get(instance.id)
            if node is not None and node.is_up:
                node.kill()
            (self.folder / "nodes" / instance.id).unlink(missing_ok=True)

    def remove(self, instance: Any) -> None:
        """End an instance and its disk."""
        self.lose(instance)
        with self._locks[instance.id]:
            node = self.nodes.pop(instance.id, None)
            if node is not None:
                node.remove()

    def fault(self, action: str) -> dict[str, Any]:
        """Return the next fault that a test asked for, once; {} for none."""
        for path in sorted((self.folder / "faults").glob(f"{action}-*")):
            try:
                fault: dict[str, Any] = json.loads(path.read_text())
                path.unlink()
            except OSError:  # another thread has it
                continue
            return fault
        return {}

    def lacks(self, instance_type: str, zone: str, market: str) -> bool:
        """Whether a test said that there is no capacity for this."""
        path = self.folder / "faults" / "capacity"
        rows = json.loads(path.read_text()) if path.exists() else []
        asked = {"type": instance_type, "zone": zone, "market": market}
        return any(all(asked[key] == value for key, value in row.items()) for row in rows)


def _state(instance: Any, name: str, code: int) -> None:
    instance._state.name, instance._state.code = name, code


def _wrap(owner: type, name: str, make: Callable[[Any], Any]) -> None:
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


def connect_instances(machines: Machines) -> None:
    """Let the life of an instance be that of its node."""

    def run_instances(original: Any) -> Any:
        def call(self: Any, image_id: str, count: int, *args: Any, **more: Any) -> Any:
            zone = more.get("placement")
            if not more.get("subnet_id") and not more.get("nics"):
                more["subnet_id"] = _default_subnet(self, zone).id
            if more.get("subnet_id"):
                zone = self.get_subnet(more["subnet_id"]).availability_zone
            market = "spot" if more.get("instance_market_options") else "on-demand"
            if not more.get("fleet_id") and machines.lacks(
                more.get("instance_type", ""), zone or "", market
            ):
                raise _no_capacity(more.get("instance_type", ""))
            made = original(self, image_id, count, *args, **more)
            for instance in made.instances:
                if more.get("lifecycle"):
                    instance.lifecycle = more["lifecycle"]
                machines.boot(instance)
            return made

        return call

    def start(original: Any) -> Any:
        def call(self: Any) -> Any:
            before = original(self)
            machines.boot(self)
            return before

        return call

    def ending(end: Callable[[Any], None]) -> Any:
        def wrap(original: Any) -> Any:
            def call(self: Any) -> Any:
                if self.state == "terminated":
                    return original(self)
                before = original(self)
                end(self)
                return before

            return call

        return wrap

    def reboot(self: Any) -> None:
        machines.lose(self)
        machines.boot(self)

    _wrap(EC2Backend, "run_instances", run_instances)
    _wrap(Instance, "start", start)
    _wrap(Instance, "stop", ending(machines.lose))
    _wrap(Instance, "terminate", ending(machines.remove))
    Instance.reboot = reboot


def connect_fleets(machines: Machines) -> None:
    """Launch fleets from their whole template, and refuse what a test says there is not."""

    def launch(self: Any, count: float, market: str) -> None:
        self.errors = getattr(self, "errors", [])
        specs = []
        for spec in self.launch_specs:
            zone = ""
            if spec.subnet_id:
                zone = self.ec2_backend.get_subnet(spec.subnet_id).availability_zone
            if machines.lacks(spec.instance_type, zone, market):
                self.errors.append((spec, market))
            else:
                specs.append(spec)
        if not specs:
            return
        spec = specs[0]
        template = {
            "LaunchTemplateId": spec.launch_template_spec["LaunchTemplateId"],
            "Version": spec.launch_template_spec.get("Version", "1"),
        }
        disks = copy.deepcopy(
            self.ec2_backend._get_template_from_args(template).data.get("BlockDeviceMappings", [])
        )
        for disk in disks:
            disk["Ebs"].setdefault("VolumeSize", 8)
        more = {"block_device_mappings": disks} if disks else {}
        made = self.ec2_backend.run_instances(
            spec.image_id,
            int(count),
            spec.user_data,
            [],
            instance_type=spec.instance_type,
            is_instance_type_default=False,
            key_name=spec.key_name,
            subnet_id=spec.subnet_id,
            fleet_id=self.id,
            tags=spec.tag_specifications,
            launch_template=template,
            **more,
            lifecycle="spot" if market == "spot" else None,
        )
        for instance in made.instances:
            if market == "spot":
                self.spot_requests.append(SimpleNamespace(instance=instance, launch_spec=spec))
            else:
                self.on_demand_instances.append(
                    {"id": made.id, "instance": instance, "launch_spec": spec}
                )
        self.fulfilled_capacity += len(made.instances)

    def create_fleet(original: Any) -> Any:
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

    Fleet.create_on_demand_requests = lambda self, count: launch(self, count, "on-demand")
    Fleet.create_spot_requests = lambda self, count: launch(self, count, "spot")
    _wrap(EC2Response, "create_fleet", create_fleet)


def add_what_moto_lacks() -> None:
    """Add placement groups, the refusal to delete a group in use, and AWS's own fingerprints."""
    groups: dict[str, dict[str, str]] = {}

    def create(self: Any) -> ActionResult:
        name = self._get_param("GroupName")
        if name in groups:
            text = f"The Placement Group '{name}' already exists."
            raise EC2ClientError("InvalidPlacementGroup.Duplicate", text)
        number = f"pg-{hashlib.sha256(name.encode()).hexdigest()[:17]}"
        strategy = self._get_param("Strategy") or "cluster"
        group = {"GroupName": name, "Strategy": strategy, "State": "available", "GroupId": number}
        groups[name] = group
        return ActionResult({"PlacementGroup": group})

    def describe(self: Any) -> ActionResult:
        names = self._get_param("GroupNames", []) or []
        for name in names:
            if name not in groups:
                text = f"The Placement Group '{name}' is unknown."
                raise EC2ClientError("InvalidPlacementGroup.Unknown", text)
        wanted = names or self._filters_from_querystring().get("group-name")
        rows = [row for name, row in groups.items() if not wanted or name in wanted]
        return ActionResult({"PlacementGroups": rows})

    def delete(self: Any) -> ActionResult:
        name = self._get_param("GroupName")
        if name not in groups:
            text = f"The Placement Group '{name}' is unknown."
            raise EC2ClientError("InvalidPlacementGroup.Unknown", text)
        del groups[name]
        return ActionResult({})

    def delete_security_group(original: Any) -> Any:
        def call(self: Any, name: str | None = None, group_id: str | None = None) -> Any:
            for instance in self.all_instances():
                held = [group.id for group in instance.security_groups]
                held += [group.id for nic in instance.nics.values() for group in nic.group_set]
                if instance.state != "terminated" and group_id in held:
                    text = f"resource {group_id} has a dependent object"
                    raise EC2ClientError("DependencyViolation", text)
            return original(self, name, group_id)

        return call

    def create_key_pair(original: Any) -> Any:
        def call(self: Any, name: str, key_type: str, tags: Any) -> Any:
            pair = original(self, name, key_type, tags)
            if key_type in (None, "rsa"):  # SHA-1 of the private key's PKCS#8
                key = serialization.load_pem_private_key(pair.material, None)
                der = key.private_bytes(
                    serialization.Encoding.DER,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                )
                digest = hashlib.sha1(der).hexdigest()  # noqa: S324 - as AWS does
                pair.key_fingerprint = ":".join(digest[i : i + 2] for i in range(0, 40, 2))
            return pair

        return call

    def block_devices(original: Any) -> Any:
        def call(self: Any) -> Any:
            ask = self._get_param

            def sized(key: str, *rest: Any) -> Any:
                value = ask(key, *rest)
                for each in value if key == "BlockDeviceMappings" and value else ():
                    if "SnapshotId" not in each.get("Ebs", {}):
                        each["Ebs"].setdefault("VolumeSize", 8)  # of the image
                return value

            self._get_param = sized
            try:
                return original(self)
            finally:
                del self._get_param

        return call

    _wrap(EC2Response, "_parse_block_device_mapping", block_devices)
    EC2Response.create_placement_group = create
    EC2Response.describe_placement_groups = describe
    EC2Response.delete_placement_group = delete
    _wrap(EC2Backend, "delete_security_group", delete_security_group)
    _wrap(EC2Backend, "create_key_pair", create_key_pair)


def record_calls(machines: Machines) -> None:
    """Log each call with its parameters, and fail it where a test asked for that."""

    def call_action(original: Any) -> Any:
        def call(self: Any) -> Any:
            action = self._get_action()
            fault = machines.fault(action)
            if fault:

                def refuse() -> None:
                    raise EC2ClientError(fault["code"], fault.get("message", "asked for"))

                snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in action).lstrip("_")
                setattr(self, snake, refuse)
            done = original(self)
            status = int(done[0])
            machines.log(action, dict(self.params or {}), str(status) if status >= 400 else "")
            return done

        return call

    _wrap(BaseResponse, "call_action", call_action)


def tell_prices() -> None:
    """Answer the price list and the quotas, which moto's server has not."""

    def answer(original: Any) -> Any:
        def call(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
            action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
            if action not in ("GetProducts", "GetServiceQuota"):
                return original(self, environ, start_response)
            length = int(environ.get("CONTENT_LENGTH") or 0)
            asked = json.loads(environ["wsgi.input"].read(length))
            told = _products(asked) if action == "GetProducts" else {"Quota": {"Value": 64.0}}
            start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
            return [json.dumps(told).encode()]

        return call

    _wrap(DomainDispatcherApplication, "__call__", answer)


def _products(asked: dict[str, Any]) -> dict[str, Any]:
    fields = {each["Field"]: each["Value"] for each in asked["Filters"]}
    price = PRICES.get(fields["instanceType"])
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": str(price)}}
    product = {"terms": {"OnDemand": {"term": {"priceDimensions": {"rate": dimension}}}}}
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product)] if price else []}


def furnish(region: str) -> None:
    """Register the image that nodes are made of."""
    backend = ec2_backends[ACCOUNT][region]
    image = backend.register_image(name="starmint-test-bed", description="Debian 12, Grid Engine")
    del backend.amis[image.id]
    image.id = IMAGE
    backend.amis[IMAGE] = image
    image.root_device_type, image.root_device_name = "ebs", "/dev/xvda"
    image.virtualization_type, image.architecture, image.state = "hvm", "x86_64", "available"


def main() -> None:
    """Serve until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    machines = Machines(settings)
    connect_instances(machines)
    connect_fleets(machines)
    add_what_moto_lacks()
    record_calls(machines)
    tell_prices()
    furnish(settings["region"])
    server = ThreadedMotoServer(
        ip_address=settings["net"].partition("/")[0], port=settings["port"], verbose=False
    )
    server.start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
