"""Convert a launch request to the arguments of AWS requests; pure."""

from __future__ import annotations

import base64
from typing import Any

from starcluster.aws import responses
from starcluster.aws.model import LaunchRequest, Place


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
    if request.capacity_block:
        arguments["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    if request.capacity_reservation:
        arguments["CapacityReservationSpecification"] = _reservation(request.capacity_reservation)
    if request.user_data:
        arguments["UserData"] = request.user_data
    if request.template_id:
        arguments["LaunchTemplate"] = {"LaunchTemplateId": request.template_id, "Version": "1"}
    return arguments


def template_data(request: LaunchRequest) -> dict[str, Any]:
    """Return the data of a launch template for :meth:`Instances.run_fleet`."""
    data = _common(request) | _network(request, Place(instance_type=""))
    if request.user_data:
        data["UserData"] = base64.b64encode(request.user_data.encode()).decode()
    if request.placement_group:
        data["Placement"] = {"GroupName": request.placement_group}
    return data


def fleet_arguments(request: LaunchRequest, version: str) -> dict[str, Any]:
    """Return the arguments of CreateFleet for an immediate, one-time launch."""
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
                    "LaunchTemplateId": request.template_id,
                    "Version": version,
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
        arguments["SpotOptions"] = {
            "AllocationStrategy": "price-capacity-optimized",
            "SingleAvailabilityZone": True,  # AWS bills traffic between zones
        }
    else:
        arguments["OnDemandOptions"] = {"AllocationStrategy": "prioritized"}
    if request.token:
        arguments["ClientToken"] = request.token
    if request.other_tags:
        arguments["TagSpecifications"] = responses.tag_specifications(request.other_tags, "fleet")
    return arguments


def _reservation(reference: str) -> dict[str, Any]:
    if reference.startswith("arn:"):
        return {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": reference}}
    if reference.startswith("cr-"):
        return {"CapacityReservationTarget": {"CapacityReservationId": reference}}
    return {"CapacityReservationPreference": reference}


def _tags(request: LaunchRequest) -> list[dict[str, Any]]:
    # AWS refuses tags of a spot request that the launch does not make.
    others = ("network-interface", *(["spot-instances-request"] if request.spot else []))
    return [
        *responses.tag_specifications(request.tags, "instance", "volume"),
        *responses.tag_specifications(request.other_tags, *others),
    ]


def _common(request: LaunchRequest) -> dict[str, Any]:
    """Return the arguments that RunInstances and a launch template share."""
    arguments: dict[str, Any] = {
        "ImageId": request.image_id,
        # Require a session token, so that a web page on a node cannot be tricked into reading
        # the credentials of the role.
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpEndpoint": "enabled",
            "HttpPutResponseHopLimit": request.metadata_hops,
        },
    }
    if request.instance_profile:
        kind = "Arn" if request.instance_profile.startswith("arn:") else "Name"
        arguments["IamInstanceProfile"] = {kind: request.instance_profile}
    if request.key_name:
        arguments["KeyName"] = request.key_name
    if tags := _tags(request):
        arguments["TagSpecifications"] = tags
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
    """Return subnet and groups; in network interfaces if a public address or these are set."""
    if request.interfaces:
        return {"NetworkInterfaces": _interfaces(request, place)}
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


def _interfaces(request: LaunchRequest, place: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "NetworkCardIndex": each.card,
            "DeviceIndex": each.device,
            "InterfaceType": each.type,
            "DeleteOnTermination": True,
            "Groups": list(request.group_ids),
            "SubnetId": place.subnet_id,
        }
        for each in request.interfaces
    ]
    if len(found) == 1 and request.public_ip is not None:  # AWS refuses it for several
        found[0]["AssociatePublicIpAddress"] = request.public_ip
    return found
