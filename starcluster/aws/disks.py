"""Dollars per month of EBS volumes, from the AWS price list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import EbsVolume
from starcluster.errors import AwsError
from starcluster.threadpool import soon

PRICES_S = 5.0
"""Timeout in seconds for prices, which are only displayed."""
_FREE_IOPS, _FREE_MIB_S = 3000, 125  # of gp3; https://aws.amazon.com/ebs/pricing/


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskCost:
    """Cost of volumes.

    Attributes:
        dollars: Per month, for the storage of the types with a known price.
        unknown: Types whose price AWS did not report.
        performance: Whether AWS also bills IOPS or throughput, which ``dollars`` does not have.
    """

    gib: int
    dollars: float
    unknown: tuple[str, ...] = ()
    performance: bool = False

    def __str__(self) -> str:
        known = f"${self.dollars:.2f} per month"
        if self.unknown:
            types = ", ".join(self.unknown)
            known = f"{known} plus {types} (price unknown)" if self.dollars else "price unknown"
        return known + " plus provisioned IOPS and throughput" * self.performance


def per_gib_month(ec2: Ec2, types: Iterable[str]) -> dict[str, float]:
    """Return dollars per GiB and month of each volume type, without types of unknown price."""
    found: dict[str, float] = {}
    for name in sorted(set(types)):
        wanted = {"productFamily": "Storage", "volumeApiName": name, "regionCode": ec2.region}
        question = prices.question(wanted)
        try:
            products = list(ec2.pages("pricing", "GetProducts", "PriceList", **question))
        except AwsError:
            continue  # many users have no permission to ask for prices
        price = prices.price_in([json.loads(product) for product in products], unit="GB-Mo")
        if price is not None:
            found[name] = price
    return found


def cost_of_disks(ec2: Ec2, volumes: Iterable[EbsVolume]) -> DiskCost:
    """Return the cost of volumes; waits up to ``PRICES_S`` for AWS's price list."""
    given = list(volumes)
    no_prices: dict[str, float] = {}
    known = soon(
        lambda: per_gib_month(ec2, {volume.type for volume in given}),
        within_s=PRICES_S,
        otherwise=no_prices,
    )
    return priced(given, known)


def priced(volumes: Iterable[EbsVolume], per_gib: Mapping[str, float]) -> DiskCost:
    """Return the cost of volumes at prices per GiB and month by type."""
    gib, dollars, performance = 0, 0.0, False
    unknown: dict[str, None] = {}
    for volume in volumes:
        gib += volume.size_gib
        if volume.type in per_gib:
            dollars += volume.size_gib * per_gib[volume.type]
        else:
            unknown[volume.type] = None
        performance |= volume.type in ("io1", "io2")
        more = volume.iops > _FREE_IOPS or volume.throughput > _FREE_MIB_S
        performance |= volume.type == "gp3" and more
    return DiskCost(gib=gib, dollars=dollars, unknown=tuple(unknown), performance=performance)
