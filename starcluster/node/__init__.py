"""A node over SSH: run commands, move files, manage users; the only room that imports paramiko."""

from starcluster.node.node import Node
from starcluster.node.shell import Shell

__all__ = [
    "Node",
    "Shell",
]
