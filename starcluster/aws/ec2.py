"""``Ec2`` has all requests to EC2 as methods; its base classes group them by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from starcluster.aws import responses
from starcluster.aws.filesystems import FileSystems
from starcluster.aws.iam import Iam
from starcluster.aws.instances import Instances, as_filters
from starcluster.aws.model import InstanceType, Region, SpotPrice, Zone
from starcluster.aws.network import Network
from starcluster.aws.reservations import Reservations
from starcluster.aws.roles import Roles
from starcluster.aws.routes import Routes
from starcluster.aws.session_manager import SessionManager
from starcluster.aws.storage import Storage
from starcluster.errors import AwsError

__all__ = ["Ec2"]

# The most types that one DescribeInstanceTypes accepts.
_TYPES_A_REQUEST = 100


class Ec2(
    Instances, Network, Routes, Storage, FileSystems, Iam, Reservations, Roles, SessionManager
):
    """One region of EC2 with the credentials of an account; threads can share it."""

    def regions(self) -> list[Region]:
        """Return all regions, sorted by name."""
        answer = self.call("ec2", "DescribeRegions", AllRegions=True)
        found = [
            Region(
                name=region["RegionName"],
                endpoint=region.get("Endpoint") or "",
                enabled=region.get("OptInStatus") != "not-opted-in",
            )
            for region in answer.get("Regions", ())
        ]
        return sorted(found, key=lambda region: region.name)

    def zones(self) -> list[Zone]:
        """Return the zones of the region, sorted by name."""
        filters = as_filters({"zone-type": ["availability-zone"]})
        answer = self.call("ec2", "DescribeAvailabilityZones", Filters=filters)
        found = [
            Zone(
                name=zone["ZoneName"],
                id=zone.get("ZoneId") or "",
                state=zone.get("State") or "",
                region=zone.get("RegionName") or self.region,
            )
            for zone in answer.get("AvailabilityZones", ())
        ]
        return sorted(found, key=lambda zone: zone.name)

    def instance_types(self, names: Iterable[str]) -> dict[str, InstanceType]:
        """Return the facts of each type that the region offers, by name."""
        wanted = sorted(set(names))
        found: dict[str, InstanceType] = {}
        for start in range(0, len(wanted), _TYPES_A_REQUEST):
            # A filter, because one unknown name in InstanceTypes would fail the whole request.
            filters = as_filters({"instance-type": wanted[start : start + _TYPES_A_REQUEST]})
            for item in self.pages(
                "ec2", "DescribeInstanceTypes", "InstanceTypes", Filters=filters
            ):
                found[item["InstanceType"]] = responses.instance_type(item)
        return found

    def types_with_gpus(self) -> list[InstanceType]:
        """Return the facts of all types with NVIDIA GPUs that the region offers."""
        # EC2 has no filter for GPUs, and new families have new names.
        found = self.pages("ec2", "DescribeInstanceTypes", "InstanceTypes")
        types = [responses.instance_type(item) for item in found if item.get("GpuInfo")]
        return [each for each in types if each.gpus and each.gpu_name.startswith("NVIDIA")]

    def offered_types(self) -> list[str]:
        """Return the names of all types that the region offers."""
        found = self.pages(
            "ec2", "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", LocationType="region"
        )
        return sorted(str(offer["InstanceType"]) for offer in found)

    def zones_offering(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the zones that offer each type."""
        found: dict[str, list[str]] = {name: [] for name in names}
        if not names:
            return found
        offers = self.pages(
            "ec2",
            "DescribeInstanceTypeOfferings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            Filters=as_filters({"instance-type": names}),
        )
        for offer in offers:
            found.setdefault(offer["InstanceType"], []).append(offer["Location"])
        return {name: sorted(zones) for name, zones in found.items()}

    def placement_scores(self, types: Sequence[str], count: int) -> dict[str, int]:
        """Return how likely AWS has ``count`` spot instances in one zone, 1 to 10, by zone id."""
        found = self.pages(
            "ec2",
            "GetSpotPlacementScores",
            "SpotPlacementScores",
            InstanceTypes=list(types),
            TargetCapacity=count,
            SingleAvailabilityZone=True,
            RegionNames=[self.region],
        )
        return {str(item["AvailabilityZoneId"]): int(item["Score"]) for item in found}

    def spot_prices(
        self,
        types: Sequence[str],
        *,
        start: datetime,
        end: datetime,
        zones: Sequence[str] = (),
    ) -> list[SpotPrice]:
        """Return spot prices of Linux in order of time, from the price in force at ``start``."""
        found = self.pages(
            "ec2",
            "DescribeSpotPriceHistory",
            "SpotPriceHistory",
            InstanceTypes=list(types),
            ProductDescriptions=["Linux/UNIX"],
            StartTime=start,
            EndTime=end,
            Filters=as_filters({"availability-zone": zones}),
        )
        return sorted((responses.spot_price(item) for item in found), key=lambda p: p.time)

    def vcpu_quota(self, code: str) -> float | None:
        """Return a quota in vCPUs by its code (``L-1216C47A``); None if AWS reports none."""
        try:
            answer = self.call(
                "service-quotas", "GetServiceQuota", ServiceCode="ec2", QuotaCode=code
            )
        except AwsError:
            return None
        return float(answer["Quota"]["Value"])
