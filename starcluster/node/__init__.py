"""A node over SSH: run commands, copy files, manage users. No other package imports paramiko."""

from starcluster.node.node import Node
from starcluster.node.shell import Shell

__all__ = [
    "Node",
    "Shell",
]
