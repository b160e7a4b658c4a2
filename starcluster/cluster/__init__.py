"""Start, find, resize, stop and terminate clusters; make images of nodes."""

from starcluster.cluster.cluster import Cluster, all_clusters, find, only_running
from starcluster.cluster.image import make_image
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.operation import BAD_NODE, Outcome

__all__ = [
    "BAD_NODE",
    "Cluster",
    "ClusterLifecycle",
    "Outcome",
    "all_clusters",
    "find",
    "make_image",
    "only_running",
]
