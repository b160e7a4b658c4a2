"""Capacity reservations and Capacity Blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starcluster.aws.client import AwsClient
from starcluster.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A capacity reservation of one instance type in one zone.

    Attributes:
        total, left: Instances that it has, and that it can still take.
        block: Whether it is a Capacity Block, which is paid in advance.
        tenancy: ``default`` or ``dedicated``.
    """

    id: str
    type: str
    zone: str
    state: str
    total: int
    left: int
    block: bool = False
    start: datetime | None = None
    end: datetime | None = None
    platform: str = ""
    tenancy: str = "default"


class Reservations(AwsClient):
    """Requests about capacity reservations."""

    def reservations(self, reference: str) -> list[Reservation]:
        """Return the reservation with an id, or those of a resource group by its ARN.

        An unknown id or group gives an empty list.
        """
        ids = self._ids_of_group(reference) if reference.startswith("arn:") else [reference]
        if not ids:
            return []
        try:
            found = self.pages(
                "ec2",
                "DescribeCapacityReservations",
                "CapacityReservations",
                CapacityReservationIds=list(ids),
            )
            return [_reservation(item) for item in found]
        except NotFound:
            return []

    def _ids_of_group(self, arn: str) -> Sequence[str]:
        try:
            items = list(
                self.pages(
                    "resource-groups", "ListGroupResources", "ResourceIdentifiers", Group=arn
                )
            )
        except NotFound:
            return []
        kind = "AWS::EC2::CapacityReservation"
        arns = [str(item["ResourceArn"]) for item in items if item["ResourceType"] == kind]
        return [arn.rpartition("/")[2] for arn in arns]


def _reservation(answer: Mapping[str, Any]) -> Reservation:
    return Reservation(
        id=answer["CapacityReservationId"],
        type=answer.get("InstanceType") or "",
        zone=answer.get("AvailabilityZone") or "",
        state=answer.get("State") or "",
        total=answer.get("TotalInstanceCount", 0),
        left=answer.get("AvailableInstanceCount", 0),
        block=answer.get("ReservationType") == "capacity-block",
        start=answer.get("StartDate"),
        end=answer.get("EndDate"),
        platform=answer.get("InstancePlatform") or "",
        tenancy=answer.get("Tenancy") or "default",
    )
