"""What of a cluster is there and costs, whatever happened."""

from __future__ import annotations

from collections.abc import Sequence

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.errors import StarClusterError
from starcluster.launch import plan
from starcluster.launch.launcher import PRICES_S
from starcluster.model import Instance, group_name
from starcluster.threadpool import soon


def remains(ec2: Ec2, name: str) -> str:
    """Return what of a cluster is there and costs, and what to do with it; for people."""
    try:
        found = ec2.instances(cluster=name)
        left = bool(found) or bool(ec2.security_groups(group_name(name)))
    except StarClusterError:
        return f"It may be running, and cost: starcluster listclusters {name}"
    if not left:
        return "Nothing of it runs or costs."
    if not found:
        return (
            "No instance of it runs; only its security group is left. "
            f"Remove it: starcluster terminate {name}"
        )
    count = f"{len(found)} instances of it exist" if len(found) > 1 else "1 instance of it exists"
    names = ", ".join(each.alias or each.id for each in found)
    return (
        f"{count} ({names}): {price_now(ec2, found)}.\n"
        f"Go on: starcluster start -x {name}\n"
        f"Or remove it: starcluster terminate {name}"
    )


def price_now(ec2: Ec2, found: Sequence[Instance]) -> plan.Cost:
    """Return what instances cost now, at most; without waiting long for AWS's price list."""
    types = {each.type for each in found}
    nothing: dict[str, float] = {}
    told = soon(lambda: prices.on_demand(ec2, types), within_s=PRICES_S, otherwise=nothing)
    return plan.cost_of(found, told)
