"""Plan a launch, check it against AWS, launch its instances and wait for them."""

from starcluster.launch.launcher import Launcher
from starcluster.launch.origin import Origin
from starcluster.launch.plan import Planned, more_nodes, whole_cluster
from starcluster.launch.preflight import AwsInventory, aws_problems, fetch
from starcluster.launch.survey import LaunchContext, gather
from starcluster.launch.wait import Timeouts

__all__ = [
    "AwsInventory",
    "LaunchContext",
    "Launcher",
    "Origin",
    "Planned",
    "Timeouts",
    "aws_problems",
    "fetch",
    "gather",
    "more_nodes",
    "whole_cluster",
]
