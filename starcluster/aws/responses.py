"""Convert responses of AWS to the classes of ``aws.model``; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from starcluster.aws.aliases import alias_at
from starcluster.aws.model import (
    EbsVolume,
    Image,
    Instance,
    InstanceType,
    KeyPair,
    LaunchRequest,
    SecurityGroup,
    SpotPrice,
    SpotRequest,
    Subnet,
)
from starcluster.config.sections import Permission
from starcluster.model import TAG_ALIAS, TAG_ALIASES

Answer = Mapping[str, Any]
_TIME_OF_END = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


def tags_of(answer: Answer) -> dict[str, str]:
    """Return the tags of a resource."""
    return {str(tag["Key"]): str(tag.get("Value", "")) for tag in answer.get("Tags") or ()}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Return tags in the form of AWS."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tag_specifications(tags: Mapping[str, str], *kinds: str) -> list[dict[str, Any]]:
    """Return the argument that tags new resources of ``kinds``; empty without tags."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)} for kind in kinds] if tags else []


def instance(answer: Answer) -> Instance:
    """Convert an item of DescribeInstances or RunInstances."""
    reason = answer.get("StateReason", {}).get("Message") or answer.get("StateTransitionReason")
    return Instance(
        id=answer["InstanceId"],
        state=answer.get("State", {}).get("Name", ""),
        type=answer.get("InstanceType", ""),
        image_id=answer.get("ImageId", ""),
        zone=answer.get("Placement", {}).get("AvailabilityZone", ""),
        private_ip=answer.get("PrivateIpAddress") or "",
        public_ip=answer.get("PublicIpAddress") or "",
        private_dns=answer.get("PrivateDnsName") or "",
        public_dns=answer.get("PublicDnsName") or "",
        key_name=answer.get("KeyName") or "",
        is_spot=answer.get("InstanceLifecycle") == "spot",
        prepaid=answer.get("InstanceLifecycle") == "capacity-block",
        launched=answer.get("LaunchTime"),
        tags=_tags_of_instance(answer),
        reason=reason or "",
        subnet_id=answer.get("SubnetId") or "",
        group_names=tuple(group["GroupName"] for group in answer.get("SecurityGroups", ())),
        spot_request_id=answer.get("SpotInstanceRequestId") or "",
        made=_made(answer),
        ended=_ended(answer),
        interrupted=_is_interrupted(answer),
        profile=answer.get("IamInstanceProfile", {}).get("Arn") or "",
    )


def _made(answer: Answer) -> datetime | None:
    """Return when the first network interface was attached; LaunchTime is that of a restart."""
    for card in answer.get("NetworkInterfaces", ()):
        attachment = card.get("Attachment", {})
        if attachment.get("DeviceIndex") == 0:
            return attachment.get("AttachTime") or None
    return None


def _ended(answer: Answer) -> datetime | None:
    """Return the time in a reason such as ``User initiated (2026-01-31 10:00:00 GMT)``."""
    found = _TIME_OF_END.search(answer.get("StateTransitionReason") or "")
    if found is None or answer.get("State", {}).get("Name") in ("pending", "running"):
        return None
    return datetime.fromisoformat(found[1]).replace(tzinfo=UTC)


def _is_interrupted(answer: Answer) -> bool:
    code = answer.get("StateReason", {}).get("Code") or ""
    return answer.get("InstanceLifecycle") == "spot" and code.startswith("Server.Spot")


def instance_of_fleet(id: str, fleet: Answer, request: LaunchRequest) -> Instance:
    """Return a new instance from the response of CreateFleet, which has no addresses."""
    place = fleet.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    subnet = place.get("SubnetId") or ""
    zones = [each.zone for each in request.places if subnet and each.subnet_id == subnet]
    return Instance(
        id=id,
        state="pending",
        type=fleet.get("InstanceType") or place.get("InstanceType") or "",
        image_id=request.image_id,
        zone=place.get("AvailabilityZone") or next(iter(zones), ""),
        is_spot=request.spot,
        tags=request.tags,
        subnet_id=subnet,
    )


def _tags_of_instance(answer: Answer) -> dict[str, str]:
    """Return the tags, with the alias that the launch assigned."""
    tags = tags_of(answer)
    if TAG_ALIAS not in tags and TAG_ALIASES in tags:
        tags[TAG_ALIAS] = alias_at(tags[TAG_ALIASES], answer.get("AmiLaunchIndex", 0))
    return tags


def instance_type(answer: Answer) -> InstanceType:
    """Convert an item of DescribeInstanceTypes."""
    gpus = answer.get("GpuInfo", {}).get("Gpus", ())
    first = gpus[0] if gpus else {}
    architectures = answer.get("ProcessorInfo", {}).get("SupportedArchitectures", ["x86_64"])
    strategies = answer.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())
    network = answer.get("NetworkInfo", {})
    efa = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 1)
    return InstanceType(
        efa=efa if network.get("EfaSupported") else 0,
        cards={
            card.get("NetworkCardIndex", 0): tuple(card.get("InterfaceTypes", ()))
            for card in network.get("NetworkCards", ())
        },
        name=answer["InstanceType"],
        vcpus=answer.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        memory_mib=answer.get("MemoryInfo", {}).get("SizeInMiB", 0),
        architecture="arm64" if "arm64" in architectures else "x86_64",
        gpus=sum(gpu.get("Count") or gpu.get("LogicalGpuCount", 0) for gpu in gpus),
        gpu_name=f"{first.get('Manufacturer', '')} {first.get('Name', '')}".strip(),
        gpu_memory_mib=first.get("MemoryInfo", {}).get("SizeInMiB", 0),
        gpu_part=first.get("GpuPartitionSize") or 1.0,
        spot="spot" in answer.get("SupportedUsageClasses", ("spot",)),
        placement_group="cluster" in strategies,
    )


def image(answer: Answer) -> Image:
    """Convert an item of DescribeImages."""
    device = answer.get("RootDeviceName") or ""
    sizes = {
        mapping.get("DeviceName"): mapping.get("Ebs", {}).get("VolumeSize", 0)
        for mapping in answer.get("BlockDeviceMappings", ())
    }
    return Image(
        id=answer["ImageId"],
        name=answer.get("Name") or "",
        state=answer.get("State") or "",
        architecture=answer.get("Architecture") or "",
        root_device=device,
        root_size_gib=sizes.get(device, 0),
        windows=_is_windows(answer),
        created=answer.get("CreationDate") or "",
        owner=answer.get("OwnerId") or "",
        public=bool(answer.get("Public")),
        tags=tags_of(answer),
        snapshots=tuple(
            mapping["Ebs"]["SnapshotId"]
            for mapping in answer.get("BlockDeviceMappings", ())
            if mapping.get("Ebs", {}).get("SnapshotId")
        ),
    )


def _is_windows(answer: Answer) -> bool:
    """Return whether an image is of Windows; AWS sends ``Platform`` for these only."""
    details = answer.get("PlatformDetails") or ""  # such as "Windows with SQL Server Web"
    return bool((answer.get("Platform") or "").lower() == "windows" or "Windows" in details)


def ebs_volume(answer: Answer) -> EbsVolume:
    """Convert an item of DescribeVolumes, or the response of CreateVolume."""
    attached = [
        attachment for attachment in answer.get("Attachments") or () if attachment.get("InstanceId")
    ]
    first = attached[0] if attached else {}
    return EbsVolume(
        id=answer["VolumeId"],
        state=answer.get("State") or "",
        size_gib=answer.get("Size", 0),
        zone=answer.get("AvailabilityZone") or "",
        type=answer.get("VolumeType") or "",
        encrypted=bool(answer.get("Encrypted")),
        created=answer.get("CreateTime"),
        snapshot_id=answer.get("SnapshotId") or "",
        instance_id=first.get("InstanceId", ""),
        device=first.get("Device", ""),
        tags=tags_of(answer),
        iops=answer.get("Iops") or 0,
        throughput=answer.get("Throughput") or 0,
        stays=bool(first) and not first.get("DeleteOnTermination"),
    )


def key_pair(answer: Answer) -> KeyPair:
    """Convert an item of DescribeKeyPairs."""
    return KeyPair(
        name=answer["KeyName"],
        fingerprint=answer.get("KeyFingerprint") or "",
        type=answer.get("KeyType") or "",
        public=answer.get("PublicKey") or "",
    )


def subnet(answer: Answer) -> Subnet:
    """Convert an item of DescribeSubnets."""
    return Subnet(
        id=answer["SubnetId"],
        vpc_id=answer.get("VpcId") or "",
        zone=answer.get("AvailabilityZone") or "",
        free_addresses=answer.get("AvailableIpAddressCount", 0),
        public_ips=bool(answer.get("MapPublicIpOnLaunch")),
        cidr=answer.get("CidrBlock") or "",
        ipv6=bool(answer.get("AssignIpv6AddressOnCreation")),
    )


def security_group(answer: Answer) -> SecurityGroup:
    """Convert an item of DescribeSecurityGroups."""
    rules = answer.get("IpPermissions", ())
    return SecurityGroup(
        id=answer["GroupId"],
        name=answer.get("GroupName") or "",
        vpc_id=answer.get("VpcId") or "",
        permissions=tuple(found for rule in rules for found in _permissions(rule)),
        joined=_joins(rules, answer["GroupId"]),
        joined_outbound=_joins(answer.get("IpPermissionsEgress", ()), answer["GroupId"]),
        tags=tags_of(answer),
    )


def _joins(rules: Iterable[Answer], group: str) -> bool:
    """Return whether a rule is for all traffic of the members of a group."""
    return any(
        str(rule.get("IpProtocol")) == "-1" and pair.get("GroupId") == group
        for rule in rules
        for pair in rule.get("UserIdGroupPairs", ())
    )


def _permissions(rule: Answer) -> Iterable[Permission]:
    for span in (*rule.get("IpRanges", ()), *rule.get("Ipv6Ranges", ())):
        yield Permission(
            name=span.get("Description") or "",
            ip_protocol=str(rule.get("IpProtocol", "")),
            from_port=rule.get("FromPort", -1),
            to_port=rule.get("ToPort", -1),
            cidr_ip=span.get("CidrIp") or span.get("CidrIpv6") or "",
        )


def ip_permission(permission: Permission) -> dict[str, Any]:
    """Return a permission in the form of AWS."""
    span = {"CidrIp": permission.cidr_ip}
    if permission.name:
        span["Description"] = permission.name
    kind = "Ipv6Ranges" if ":" in permission.cidr_ip else "IpRanges"
    if kind == "Ipv6Ranges":
        span["CidrIpv6"] = span.pop("CidrIp")
    return {
        "IpProtocol": permission.ip_protocol,
        "FromPort": permission.from_port,
        "ToPort": permission.to_port,
        kind: [span],
    }


def spot_request(answer: Answer) -> SpotRequest:
    """Convert an item of DescribeSpotInstanceRequests."""
    wanted = answer.get("LaunchSpecification", {})
    zone = wanted.get("Placement", {}).get("AvailabilityZone")
    return SpotRequest(
        id=answer["SpotInstanceRequestId"],
        state=answer.get("State") or "",
        status=answer.get("Status", {}).get("Code") or "",
        type=wanted.get("InstanceType") or "",
        zone=answer.get("LaunchedAvailabilityZone") or zone or "",
        bid=answer.get("SpotPrice") or "",
        instance_id=answer.get("InstanceId") or "",
        created=answer.get("CreateTime"),
        changed=answer.get("Status", {}).get("UpdateTime"),
    )


def spot_price(answer: Answer) -> SpotPrice:
    """Convert an item of DescribeSpotPriceHistory."""
    return SpotPrice(
        type=answer["InstanceType"],
        zone=answer.get("AvailabilityZone") or "",
        price=float(answer["SpotPrice"]),
        time=answer["Timestamp"],
    )
