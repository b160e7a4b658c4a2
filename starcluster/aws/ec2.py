"""``Ec2`` has every request to EC2 as a method; see its bases for those of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from starcluster.aws import responses
from starcluster.aws.instances import Instances, as_filters
from starcluster.aws.model import InstanceType, Region, SpotPrice, Zone
from starcluster.aws.network import Network
from starcluster.aws.storage import Storage
from starcluster.errors import AwsError

__all__ = ["Ec2"]

# What one DescribeInstanceTypes takes.
_TYPES_A_REQUEST = 100


class Ec2(Instances, Network, Storage):
    """One region of EC2, with an account's credentials; may be used by many threads."""

    def account(self) -> str:
        """Return the number of the account that the credentials are of."""
        return str(self.call("sts", "GetCallerIdentity")["Account"])

    def regions(self) -> list[Region]:
        """Return all regions by name."""
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
        """Return the zones of the region by name."""
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
        """Return what each type is; one not offered in the region is left out."""
        wanted = sorted(set(names))
        found: dict[str, InstanceType] = {}
        for start in range(0, len(wanted), _TYPES_A_REQUEST):
            # As a filter: asked for by name, one unknown type would make the whole request fail.
            filters = as_filters({"instance-type": wanted[start : start + _TYPES_A_REQUEST]})
            for item in self.pages(
                "ec2", "DescribeInstanceTypes", "InstanceTypes", Filters=filters
            ):
                found[item["InstanceType"]] = responses.instance_type(item)
        return found

    def offered_types(self) -> list[str]:
        """Return the names of all types that the region offers."""
        found = self.pages(
            "ec2", "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", LocationType="region"
        )
        return sorted(str(offer["InstanceType"]) for offer in found)

    def zones_offering(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return, for each type, the zones that offer it."""
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

    def spot_prices(
        self,
        types: Sequence[str],
        *,
        start: datetime,
        end: datetime,
        zones: Sequence[str] = (),
    ) -> list[SpotPrice]:
        """Return spot prices of Linux by time, from that in force at ``start`` on."""
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
        """Return a quota in vCPUs by its code, ``L-1216C47A``; None where AWS reports none."""
        try:
            answer = self.call(
                "service-quotas", "GetServiceQuota", ServiceCode="ec2", QuotaCode=code
            )
        except AwsError:
            return None
        return float(answer["Quota"]["Value"])
