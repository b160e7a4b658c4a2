"""Run one step of the setup on all nodes in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starcluster.errors import StarClusterError
from starcluster.node.node import Node
from starcluster.threadpool import ThreadPool

T = TypeVar("T")


def on_all(
    nodes: Sequence[Node], work: Callable[[Node], T]
) -> tuple[dict[Node, T], dict[str, str]]:
    """Do ``work`` on all nodes in parallel; return the results, and the failures by alias."""

    def attempt(node: Node) -> tuple[bool, Any]:
        try:
            return True, work(node)
        except (StarClusterError, OSError) as error:
            what = error.what if isinstance(error, StarClusterError) else str(error)
            return False, what.removeprefix(f"{node.alias}: ")

    ended = dict(zip(nodes, ThreadPool().map(attempt, nodes), strict=True))
    results = {node: value for node, (done, value) in ended.items() if done}
    return results, {node.alias: value for node, (done, value) in ended.items() if not done}
