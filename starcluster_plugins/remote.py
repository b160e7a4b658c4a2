"""What these plugins share: sge_jobs on a node, and arguments from a config file."""

from __future__ import annotations

from starcluster.node import Node
from starcluster.setup import TOOLS, install

TOOLS_PYTHON = ("env", f"PYTHONPATH={TOOLS}", "PYTHONDONTWRITEBYTECODE=1", "python3")
"""Begin of a command line that runs a module of sge_jobs on a node."""


def with_tools(node: Node) -> None:
    """See to it that the node has sge_jobs."""
    install(node)


def is_true(value: str) -> bool:
    """Return whether an argument of a config file says yes."""
    return str(value).strip().lower() in ("true", "yes", "on", "1")
