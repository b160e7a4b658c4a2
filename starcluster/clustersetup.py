"""What a plugin is: a class with hooks that are called when a cluster changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starcluster.node.node import Node
from starcluster.threadpool import ThreadPool

Volumes = Mapping[str, Mapping[str, Any]]
"""Volumes by name: volume_id, device, partition, mount_path of each."""


class ClusterSetup:
    """A plugin; a hook that is not overridden is skipped.

    Every hook must stand being called again: a set-up that failed is run again as a whole.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take whatever subclasses pass on."""

    def run(
        self,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        user_shell: str,
        volumes: Volumes,
    ) -> None:
        """Set up all ``nodes``, the master among them; called by start and runplugin."""
        raise NotImplementedError

    def on_add_node(
        self,
        node: Node,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        user_shell: str,
        volumes: Volumes,
    ) -> None:
        """Set up a new node, which takes no jobs yet; ``nodes`` has it too."""
        raise NotImplementedError

    def on_remove_node(
        self,
        node: Node,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        user_shell: str,
        volumes: Volumes,
    ) -> None:
        """Undo what others know of a node that is about to go."""
        raise NotImplementedError

    def on_restart(
        self,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        user_shell: str,
        volumes: Volumes,
    ) -> None:
        """Prepare for a reboot of all nodes."""
        raise NotImplementedError

    def on_shutdown(
        self,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        user_shell: str,
        volumes: Volumes,
    ) -> None:
        """Prepare for the end of the cluster, by stop or terminate."""
        raise NotImplementedError


class DefaultClusterSetup(ClusterSetup):
    """A plugin with ``self.pool``, to work on all nodes at once."""

    def __init__(self, disable_threads: bool = False, num_threads: int = 20) -> None:
        super().__init__()
        self._num_threads = 1 if disable_threads else int(num_threads)
        self._pool: ThreadPool | None = None

    @property
    def pool(self) -> ThreadPool:
        """Threads: ``simple_job``, ``map``, ``wait``."""
        if getattr(self, "_pool", None) is None:
            self._pool = ThreadPool(getattr(self, "_num_threads", 20))
        assert self._pool is not None  # noqa: S101 - for the type checker
        return self._pool


def for_each(nodes: Iterable[Node], work: Callable[[Node], object]) -> None:
    """Do ``work`` on all nodes at once; one SetupError names every node on which it failed."""
    nodes = list(nodes)
    ThreadPool().map(work, nodes)
