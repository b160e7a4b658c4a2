"""File systems of EFS and FSx for Lustre, S3 buckets, and who can connect to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starcluster.aws.client import AwsClient
from starcluster.aws.instances import as_filters
from starcluster.errors import AwsError, NotFound, PermissionDenied

_READY = ("", "available", "AVAILABLE", "UPDATING", "MISCONFIGURED")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A file system of EFS or FSx.

    Attributes:
        state: As AWS says it; empty if nodes can mount it.
        kind: ``EFS``, or the type of an FSx file system, such as ``LUSTRE``.
        zones: Zones with an address of the file system.
        group_ids: Security groups of these addresses.
        cidrs: Blocks of the subnets of these addresses.
        source: What ``mount`` gets.
    """

    id: str
    kind: str
    state: str = ""
    vpc: str = ""
    zones: tuple[str, ...] = ()
    group_ids: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An S3 bucket; ``readable`` is whether these credentials can read it."""

    name: str
    region: str
    readable: bool = True


def efs_name(id: str, region: str) -> str:
    """Return the DNS name of an EFS file system; it resolves to the address in the node's zone."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{id}.efs.{region}.{suffix}"


class FileSystems(AwsClient):
    """Requests about file systems and buckets; none of them changes anything."""

    def efs(self, id: str) -> FileSystem:
        """Return an EFS file system with its mount targets. Raises NotFound."""
        found = _only(self.call("efs", "DescribeFileSystems", FileSystemId=id)["FileSystems"], id)
        targets = [
            target
            for target in self.pages("efs", "DescribeMountTargets", "MountTargets", FileSystemId=id)
            if target.get("LifeCycleState") == "available"
        ]
        groups: dict[str, None] = {}
        for target in targets:
            answer = self.call(
                "efs",
                "DescribeMountTargetSecurityGroups",
                MountTargetId=target["MountTargetId"],
            )
            groups |= dict.fromkeys(answer.get("SecurityGroups", ()))
        subnets = self._blocks([target["SubnetId"] for target in targets])
        return FileSystem(
            id=id,
            kind="EFS",
            state=_state(found.get("LifeCycleState")),
            vpc=next((vpc for vpc, _, _ in subnets), ""),
            zones=tuple(sorted({zone for _, zone, _ in subnets})),
            group_ids=tuple(groups),
            cidrs=tuple(cidr for _, _, cidr in subnets),
        )

    def access_point(self, id: str) -> tuple[str, str]:
        """Return the file system of an EFS access point, and its state. Raises NotFound."""
        answer = self.call("efs", "DescribeAccessPoints", AccessPointId=id)
        found = _only(answer["AccessPoints"], id)
        return str(found["FileSystemId"]), _state(found.get("LifeCycleState"))

    def fsx(self, id: str) -> FileSystem:
        """Return an FSx file system. Raises NotFound."""
        answer = self.call("fsx", "DescribeFileSystems", FileSystemIds=[id])
        found = _only(answer["FileSystems"], id)
        subnets = self._blocks(found.get("SubnetIds", ()))
        mount_name = found.get("LustreConfiguration", {}).get("MountName") or ""
        return FileSystem(
            id=id,
            kind=str(found["FileSystemType"]),
            state=_state(found.get("Lifecycle")),
            vpc=next((vpc for vpc, _, _ in subnets), ""),
            zones=tuple(sorted({zone for _, zone, _ in subnets})),
            group_ids=self._groups(found.get("NetworkInterfaceIds", ())),
            cidrs=tuple(cidr for _, _, cidr in subnets),
            source=f"{found.get('DNSName', '')}@tcp:/{mount_name}",
        )

    def bucket(self, name: str) -> Bucket:
        """Return a bucket of any region. Raises NotFound."""
        try:
            answer = self.call("s3", "HeadBucket", Bucket=name)
        except NotFound:
            raise
        except PermissionDenied:
            return Bucket(name=name, region="", readable=False)
        except AwsError as error:
            # The response has no body, so the code is the HTTP status.
            if error.code == "404":
                raise NotFound(f"no bucket '{name}'", "", code=error.code) from error
            if error.code in ("403", "301", "400"):
                return Bucket(name=name, region="", readable=False)
            raise
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        region = answer.get("BucketRegion") or headers.get("x-amz-bucket-region") or ""
        return Bucket(name=name, region=str(region))

    def clients_of(self, group_ids: Sequence[str], port: int) -> tuple[str, ...]:
        """Return who can connect to a TCP port of members of security groups.

        Returns:
            Address blocks, ids of prefix lists (``pl-``), and names of security groups.
        """
        if not group_ids:
            return ()
        found: dict[str, None] = {}
        groups: dict[str, None] = {}
        for group in self.pages(
            "ec2", "DescribeSecurityGroups", "SecurityGroups", GroupIds=list(group_ids)
        ):
            for rule in group.get("IpPermissions", ()):
                if not _admits(rule, port):
                    continue
                lists = rule.get("PrefixListIds", ())
                members = rule.get("UserIdGroupPairs", ())
                found |= dict.fromkeys(each["CidrIp"] for each in rule.get("IpRanges", ()))
                found |= dict.fromkeys(each["PrefixListId"] for each in lists)
                groups |= dict.fromkeys(each["GroupId"] for each in members)
        if groups:
            filters = as_filters({"group-id": list(groups)})
            named = self.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters)
            found |= dict.fromkeys(str(group["GroupName"]) for group in named)
        return tuple(found)

    def resolves_names(self, vpc: str) -> bool:
        """Return whether the DNS of a VPC resolves the names of file systems."""
        for attribute, key in (
            ("enableDnsSupport", "EnableDnsSupport"),
            ("enableDnsHostnames", "EnableDnsHostnames"),
        ):
            answer = self.call("ec2", "DescribeVpcAttribute", VpcId=vpc, Attribute=attribute)
            if not answer[key]["Value"]:
                return False
        return True

    def _blocks(self, subnet_ids: Iterable[str]) -> list[tuple[str, str, str]]:
        """Return VPC, zone and address block of subnets."""
        ids = list(dict.fromkeys(subnet_ids))
        if not ids:
            return []
        found = self.pages("ec2", "DescribeSubnets", "Subnets", SubnetIds=ids)
        return [(item["VpcId"], item["AvailabilityZone"], item["CidrBlock"]) for item in found]

    def _groups(self, interface_ids: Sequence[str]) -> tuple[str, ...]:
        if not interface_ids:
            return ()
        found = self.pages(
            "ec2",
            "DescribeNetworkInterfaces",
            "NetworkInterfaces",
            NetworkInterfaceIds=list(interface_ids),
        )
        return tuple(dict.fromkeys(group["GroupId"] for item in found for group in item["Groups"]))


def _only(found: Sequence[dict[str, Any]], id: str) -> dict[str, Any]:
    if not found:
        raise NotFound(f"no such file system or access point: {id}")
    return found[0]


def _state(value: str | None) -> str:
    return "" if (value or "") in _READY else str(value)


def _admits(rule: dict[str, Any], port: int) -> bool:
    if rule.get("IpProtocol") == "-1":
        return True
    of_port = rule.get("FromPort", 0) <= port <= rule.get("ToPort", 0)
    return rule.get("IpProtocol") in ("tcp", "6") and of_port
