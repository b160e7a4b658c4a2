"""Check before the first decision that the limits of a balancer can be kept."""

from __future__ import annotations

from starcluster.aws import prices
from starcluster.balance.decision.decide import Limits
from starcluster.cluster.cluster import Cluster
from starcluster.errors import InputError
from starcluster.model import is_master

STOP_S = 120.0
"""The budget pays for this time after the decision to stop."""


def check_limits(limits: Limits, cluster: Cluster) -> None:
    """Raise InputError for a budget without prices, and for idle_stop with a spot master."""
    if limits.budget is not None:
        template = cluster.template
        types = {instance.type for instance in cluster.instances}
        types |= {template.node_instance_type[-1].instance_type, *template.fallback_instance_types}
        unknown = sorted(types - prices.on_demand(cluster.ec2, types).keys())
        if unknown:
            raise InputError(
                f"cannot keep the budget of ${limits.budget:.2f}: AWS does not report the price "
                f"of {', '.join(unknown)}",
                "Allow these credentials pricing:GetProducts, or remove budget.",
            )
    spot_master = any(each.is_spot and is_master(each.alias) for each in cluster.instances)
    if limits.idle_stop_s is not None and spot_master:
        raise InputError(
            f"cluster '{cluster.name}' cannot stop: its master is a spot instance",
            "Use --kill-cluster, which terminates it when no job is left, or remove idle_stop.",
        )
