"""Features of EC2 and related services that moto does not have and clients use."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives import serialization
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from tests.testbed.cloud import PRICES
from tests.testbed.moto_instances import wrap

DISK_PRICES = {"gp2": 0.1, "gp3": 0.08}  # dollars per GiB and month


def add_what_moto_lacks() -> None:
    """Add placement groups, the error for deleting a group in use, and AWS's fingerprints."""
    wrap(EC2Response, "_parse_block_device_mapping", _sized_disks)
    wrap(EC2Backend, "delete_security_group", _refused_while_in_use)
    wrap(EC2Backend, "create_key_pair", _with_fingerprint_of_aws)
    groups = PlacementGroups()
    EC2Response.get_spot_placement_scores = lambda self: ActionResult({"SpotPlacementScores": []})
    EC2Response.create_placement_group = groups.create
    EC2Response.describe_placement_groups = groups.describe
    EC2Response.delete_placement_group = groups.delete


class PlacementGroups:
    """Placement groups by name; the functions answer requests."""

    def __init__(self) -> None:
        groups: dict[str, dict[str, str]] = {}

        def create(self: Any) -> ActionResult:
            name = self._get_param("GroupName")
            if name in groups:
                text = f"The Placement Group '{name}' already exists."
                raise EC2ClientError("InvalidPlacementGroup.Duplicate", text)
            number = f"pg-{hashlib.sha256(name.encode()).hexdigest()[:17]}"
            strategy = self._get_param("Strategy") or "cluster"
            group = {"GroupName": name, "Strategy": strategy, "GroupId": number}
            groups[name] = group | {"State": "available"}
            return ActionResult({"PlacementGroup": groups[name]})

        def describe(self: Any) -> ActionResult:
            names = self._get_param("GroupNames", []) or []
            for name in names:
                known(name)
            wanted = names or self._filters_from_querystring().get("group-name")
            rows = [row for name, row in groups.items() if not wanted or name in wanted]
            return ActionResult({"PlacementGroups": rows})

        def delete(self: Any) -> ActionResult:
            del groups[known(self._get_param("GroupName"))]
            return ActionResult({})

        def known(name: str) -> str:
            if name not in groups:
                text = f"The Placement Group '{name}' is unknown."
                raise EC2ClientError("InvalidPlacementGroup.Unknown", text)
            return name

        self.create, self.describe, self.delete = create, describe, delete


def _refused_while_in_use(original: Any) -> Any:
    def call(self: Any, name: str | None = None, group_id: str | None = None) -> Any:
        for instance in self.all_instances():
            held = [group.id for group in instance.security_groups]
            held += [group.id for nic in instance.nics.values() for group in nic.group_set]
            if instance.state != "terminated" and group_id in held:
                text = f"resource {group_id} has a dependent object"
                raise EC2ClientError("DependencyViolation", text)
        return original(self, name, group_id)

    return call


def _with_fingerprint_of_aws(original: Any) -> Any:
    def call(self: Any, name: str, key_type: str, tags: Any) -> Any:
        pair = original(self, name, key_type, tags)
        if key_type in (None, "rsa"):  # SHA-1 of the private key's PKCS#8
            key = serialization.load_pem_private_key(pair.material, None)
            der = key.private_bytes(
                serialization.Encoding.DER,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            digest = hashlib.sha1(der).hexdigest()  # noqa: S324 - like AWS
            pair.key_fingerprint = ":".join(digest[i : i + 2] for i in range(0, 40, 2))
        return pair

    return call


def _sized_disks(original: Any) -> Any:
    def call(self: Any) -> Any:
        ask = self._get_param

        def sized(key: str, *rest: Any) -> Any:
            value = ask(key, *rest)
            for each in value if key == "BlockDeviceMappings" and value else ():
                if "SnapshotId" not in each.get("Ebs", {}):
                    each["Ebs"].setdefault("VolumeSize", 8)  # size of the image
            return value

        self._get_param = sized
        try:
            return original(self)
        finally:
            del self._get_param

    return call


def tell_prices() -> None:
    """Answer requests for prices and quotas, which moto's server does not support."""

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

    wrap(DomainDispatcherApplication, "__call__", answer)


def _products(asked: dict[str, Any]) -> dict[str, Any]:
    fields = {each["Field"]: each["Value"] for each in asked["Filters"]}
    disk = fields.get("volumeApiName", "")
    price = DISK_PRICES.get(disk) if disk else PRICES.get(fields["instanceType"])
    dimension = {"unit": "GB-Mo" if disk else "Hrs", "pricePerUnit": {"USD": str(price)}}
    product = {"terms": {"OnDemand": {"term": {"priceDimensions": {"rate": dimension}}}}}
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product)] if price else []}
