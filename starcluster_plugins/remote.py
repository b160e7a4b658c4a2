"""Shared by these plugins: run sge_jobs on a node, and parse config arguments."""

from __future__ import annotations

from starcluster.node import Node
from starcluster.setup import TOOLS, install

TOOLS_PYTHON = ("env", f"PYTHONPATH={TOOLS}", "PYTHONDONTWRITEBYTECODE=1", "python3")
"""Start of a command line that runs a module of sge_jobs on a node."""


def with_tools(node: Node) -> None:
    """Install sge_jobs on the node, unless it is installed."""
    install(node)


def is_true(value: str) -> bool:
    """Return whether an argument of a config file is true."""
    return str(value).strip().lower() in ("true", "yes", "on", "1")
