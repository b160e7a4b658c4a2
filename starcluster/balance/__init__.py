"""Add and remove nodes of a cluster according to its queue."""

from starcluster.balance.decision.decide import Decision, Limits, QueueSnapshot, decide
from starcluster.balance.loop import Balancer
from starcluster.balance.stats.rows import Stats

__all__ = [
    "Balancer",
    "Decision",
    "Limits",
    "QueueSnapshot",
    "Stats",
    "decide",
]
