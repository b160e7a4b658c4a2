"""The file systems and buckets of a template: check them, and launch where nodes reach them."""

from starcluster.launch.storage.inventory import StorageInventory, fetch_storage
from starcluster.launch.storage.problems import storage_problems
from starcluster.launch.storage.reach import located, ports_for_servers, reachable

__all__ = [
    "StorageInventory",
    "fetch_storage",
    "located",
    "ports_for_servers",
    "reachable",
    "storage_problems",
]
