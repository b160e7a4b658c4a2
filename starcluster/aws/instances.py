"""Instances: those there are, and those to be launched, changed or ended."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starcluster.aws import responses
from starcluster.aws.client import AwsClient
from starcluster.aws.error_table import translate
from starcluster.aws.model import Instance, LaunchRequest, Place, SpotRequest
from starcluster.errors import AwsError, NotFound
from starcluster.logger import log
from starcluster.model import TAG_CLUSTER

LIVE = ("pending", "running", "stopping", "stopped")
# A resource that was made a moment ago may not be known everywhere in AWS yet: seconds to wait
# before each new try.
SETTLE_S = (0.5, 1.0, 2.0, 4.0)
# What a launch needs and was made for it: the first letters of the codes that say it is not there.
_MADE_FOR_IT = ("InvalidGroup", "InvalidSecurityGroup", "InvalidPlacementGroup", "InvalidLaunchTem")
T = TypeVar("T")


class Instances(AwsClient):
    """Requests about instances."""

    def instances(
        self,
        ids: Sequence[str] = (),
        *,
        cluster: str | None = None,
        states: Iterable[str] = LIVE,
    ) -> list[Instance]:
        """Return instances, those of ``ids`` or of ``cluster`` (``*``: of any cluster) or all.

        Instances of ``ids`` come in whatever state; one that AWS does not know raises NotFound.
        """
        filters: dict[str, Sequence[str]] = {}
        if cluster is not None:
            filters[f"tag:{TAG_CLUSTER}"] = [cluster]
        if not ids:
            filters["instance-state-name"] = list(states)
        arguments: dict[str, Any] = {"Filters": as_filters(filters)} if filters else {}
        if ids:
            arguments["InstanceIds"] = list(ids)
        found = self.pages("ec2", "DescribeInstances", "Reservations", **arguments)
        return [responses.instance(item) for page in found for item in page["Instances"]]

    def instance(self, id: str) -> Instance:
        """Return one instance. Raises NotFound."""
        found = self.instances([id])
        if not found:
            raise NotFound(f"there is no instance {id}", "See: starcluster listinstances")
        return found[0]

    def run(self, request: LaunchRequest) -> list[Instance]:
        """Launch all of ``request`` at its first place, or none."""
        arguments = run_arguments(request)
        answer = settled(lambda: self.call("ec2", "RunInstances", **arguments), _MADE_FOR_IT)
        return [responses.instance(item) for item in answer["Instances"]]

    def check_run(self, request: LaunchRequest) -> None:
        """Ask AWS whether :meth:`run` would be allowed; nothing is launched."""
        self.check_allowed("ec2", "RunInstances", **run_arguments(request))

    def run_fleet(self, request: LaunchRequest) -> tuple[list[Instance], list[AwsError]]:
        """Launch where there is capacity among all places, perhaps fewer than wanted.

        Spot instances by price and capacity, on-demand ones in the order of the places.
        Returns what was launched and why other places were not taken.
        """
        name = f"starcluster-{request.token or secrets.token_hex(8)}"
        template = self.call(
            "ec2",
            "CreateLaunchTemplate",
            LaunchTemplateName=name,
            LaunchTemplateData=template_data(request),
        )["LaunchTemplate"]["LaunchTemplateId"]
        arguments = fleet_arguments(request, template)
        try:
            answer = settled(lambda: self.call("ec2", "CreateFleet", **arguments), _MADE_FOR_IT)
        finally:
            self._forget_template(template)
        ids = [id for fleet in answer.get("Instances", ()) for id in fleet.get("InstanceIds", ())]
        errors = [
            translate(
                error.get("ErrorCode", ""),
                error.get("ErrorMessage", ""),
                operation="CreateFleet",
                region=self.region,
            )
            for error in answer.get("Errors", ())
        ]
        return (settled(lambda: self.instances(ids)) if ids else []), errors

    def _forget_template(self, id: str) -> None:
        """Delete a launch template; one that stays costs nothing, and undoes no launch."""
        try:
            self.call("ec2", "DeleteLaunchTemplate", LaunchTemplateId=id)
        except AwsError as error:
            command = f"aws ec2 delete-launch-template --launch-template-id {id}"
            log.warning("a launch template is left: %s. Delete it: %s", error.what, command)

    def start(self, ids: Sequence[str]) -> None:
        """Start stopped instances."""
        self.call("ec2", "StartInstances", InstanceIds=list(ids))

    def stop(self, ids: Sequence[str]) -> None:
        """Stop instances; their disks go on costing."""
        self.call("ec2", "StopInstances", InstanceIds=list(ids))

    def reboot(self, ids: Sequence[str]) -> None:
        """Reboot instances."""
        self.call("ec2", "RebootInstances", InstanceIds=list(ids))

    def terminate(self, ids: Sequence[str]) -> None:
        """End instances for good."""
        self.call("ec2", "TerminateInstances", InstanceIds=list(ids))

    def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        """Set ``tags`` of any resources, also of those made a moment ago."""
        wanted = responses.tag_list(tags)
        settled(lambda: self.call("ec2", "CreateTags", Resources=list(ids), Tags=wanted))

    def wait_instances(self, ids: Sequence[str], state: str, *, limit_s: float) -> None:
        """Wait until all are ``running``, ``stopped`` or ``terminated``. Raises Unreachable."""
        self.wait("ec2", f"instance_{state}", delay_s=5, limit_s=limit_s, InstanceIds=list(ids))

    def console(self, id: str) -> str:
        """Return what the instance wrote to its console; empty until AWS has it."""
        answer = self.call("ec2", "GetConsoleOutput", InstanceId=id)
        return str(answer.get("Output") or "")

    def spot_requests(self, states: Iterable[str] = ("open", "active")) -> list[SpotRequest]:
        """Return the requests for spot instances."""
        filters = as_filters({"state": list(states)})
        found = self.pages(
            "ec2", "DescribeSpotInstanceRequests", "SpotInstanceRequests", Filters=filters
        )
        return [responses.spot_request(item) for item in found]


def settled(ask: Callable[[], T], codes: tuple[str, ...] = ("",)) -> T:
    """Call ``ask``, retrying while AWS has not yet propagated a newly created resource.

    Args:
        codes: First letters of the codes that may pass.
    """
    for pause in SETTLE_S:
        try:
            return ask()
        except NotFound as error:
            if not error.code.startswith(codes):
                raise
            time.sleep(pause)
    return ask()


def as_filters(filters: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return filters as AWS takes them; those without a value are left out."""
    return [{"Name": name, "Values": list(values)} for name, values in filters.items() if values]


def run_arguments(request: LaunchRequest) -> dict[str, Any]:
    """Return the arguments of RunInstances."""
    place = request.places[0]
    arguments = _common(request) | {
        "InstanceType": place.instance_type,
        "MinCount": request.count,
        "MaxCount": request.count,
    }
    network = _network(request, place)
    arguments |= network
    placement: dict[str, str] = {}
    if place.zone and not place.subnet_id:
        placement["AvailabilityZone"] = place.zone
    if request.placement_group:
        placement["GroupName"] = request.placement_group
    if placement:
        arguments["Placement"] = placement
    if request.token:
        arguments["ClientToken"] = request.token
    if request.spot:
        options = {"SpotInstanceType": "one-time"}
        if request.spot_bid is not None:
            options["MaxPrice"] = f"{request.spot_bid:.6g}"
        arguments["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": options}
    if request.user_data:
        arguments["UserData"] = request.user_data
    return arguments


def template_data(request: LaunchRequest) -> dict[str, Any]:
    """Return the data of a launch template for :meth:`Instances.run_fleet`."""
    data = _common(request) | _network(request, Place(instance_type=""))
    if request.user_data:
        data["UserData"] = base64.b64encode(request.user_data.encode()).decode()
    if request.placement_group:
        data["Placement"] = {"GroupName": request.placement_group}
    return data


def fleet_arguments(request: LaunchRequest, template_id: str) -> dict[str, Any]:
    """Return the arguments of CreateFleet: at once, and for this once."""
    overrides: list[dict[str, Any]] = []
    for priority, place in enumerate(request.places):
        override: dict[str, Any] = {"InstanceType": place.instance_type}
        if place.subnet_id:
            override["SubnetId"] = place.subnet_id
        elif place.zone:
            override["AvailabilityZone"] = place.zone
        if request.spot and request.spot_bid is not None:
            override["MaxPrice"] = f"{request.spot_bid:.6g}"
        if not request.spot:
            override["Priority"] = float(priority)
        overrides.append(override)
    kind = "spot" if request.spot else "on-demand"
    arguments: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateId": template_id,
                    "Version": "$Latest",
                },
                "Overrides": overrides,
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.count,
            "DefaultTargetCapacityType": kind,
        },
    }
    if request.spot:
        arguments["SpotOptions"] = {"AllocationStrategy": "price-capacity-optimized"}
    else:
        arguments["OnDemandOptions"] = {"AllocationStrategy": "prioritized"}
    if request.token:
        arguments["ClientToken"] = request.token
    return arguments


def _common(request: LaunchRequest) -> dict[str, Any]:
    """Return what RunInstances and a launch template have in common."""
    arguments: dict[str, Any] = {
        "ImageId": request.image_id,
        # Only requests with a session's token are answered: no page on a node can be made to
        # read the role's credentials. Two hops, for a container on the node.
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpEndpoint": "enabled",
            "HttpPutResponseHopLimit": 2,
        },
    }
    if request.key_name:
        arguments["KeyName"] = request.key_name
    if request.tags:
        tags = responses.tag_list(request.tags)
        arguments["TagSpecifications"] = [
            {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")
        ]
    if request.root_device:
        disk: dict[str, Any] = {
            "VolumeType": "gp3",
            "DeleteOnTermination": True,
            "Encrypted": request.root_encrypted,
        }
        if request.root_size_gib is not None:
            disk["VolumeSize"] = request.root_size_gib
        arguments["BlockDeviceMappings"] = [{"DeviceName": request.root_device, "Ebs": disk}]
    return arguments


def _network(request: LaunchRequest, place: Place) -> dict[str, Any]:
    """Return subnet and groups; by an interface where the public address is set."""
    if request.public_ip is None:
        network: dict[str, Any] = {}
        if request.group_ids:
            network["SecurityGroupIds"] = list(request.group_ids)
        if place.subnet_id:
            network["SubnetId"] = place.subnet_id
        return network
    interface: dict[str, Any] = {
        "DeviceIndex": 0,
        "AssociatePublicIpAddress": request.public_ip,
        "DeleteOnTermination": True,
    }
    if request.group_ids:
        interface["Groups"] = list(request.group_ids)
    if place.subnet_id:
        interface["SubnetId"] = place.subnet_id
    return {"NetworkInterfaces": [interface]}
