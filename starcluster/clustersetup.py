"""Base classes of plugins: their hooks are called when a cluster changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starcluster.node.node import Node
from starcluster.threadpool import ThreadPool

Volumes = Mapping[str, Mapping[str, Any]]
"""Volumes by name; each has volume_id, device, partition and mount_path."""


class ClusterSetup:
    """Base of plugins; hooks that a plugin does not override are skipped.

    Every hook must allow a second call, because a failed setup is rerun as a whole.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept and ignore the arguments of subclasses."""

    def run(
        self,
        nodes: Sequence[Node],
        master: Node,
        user: str,
        user_shell: str,
        volumes: Volumes,
    ) -> None:
        """Set up all ``nodes``, including the master; called by start and runplugin."""
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
        """Set up a new node before it accepts jobs; ``nodes`` includes it."""
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
        """Remove what other nodes know of a node that is about to be removed."""
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
        """Prepare for stop or terminate of the cluster."""
        raise NotImplementedError


class DefaultClusterSetup(ClusterSetup):
    """Base of plugins with ``self.pool``, to work on all nodes concurrently."""

    def __init__(self, disable_threads: bool = False, num_threads: int = 20) -> None:
        super().__init__()
        self._num_threads = 1 if disable_threads else int(num_threads)
        self._pool: ThreadPool | None = None

    @property
    def pool(self) -> ThreadPool:
        """The thread pool: ``simple_job``, ``map``, ``wait``."""
        if getattr(self, "_pool", None) is None:
            self._pool = ThreadPool(getattr(self, "_num_threads", 20))
        assert self._pool is not None  # noqa: S101 - for the type checker
        return self._pool


def for_each(nodes: Iterable[Node], work: Callable[[Node], object]) -> None:
    """Do ``work`` on all nodes concurrently; one SetupError names all nodes that failed."""
    nodes = list(nodes)
    ThreadPool().map(work, nodes)
