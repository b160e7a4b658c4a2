"""``setup_class = starcluster.plugins.sge.SGEPlugin``: Grid Engine with custom settings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.config.parsers import directory_or_url
from starcluster.config.volume import Kind, Volume
from starcluster.errors import ConfigError
from starcluster.node.node import Node
from starcluster.setup import steps
from starcluster.threadpool import ThreadPool, failures

_FALSE = ("false", "no", "0", "off")


class SGEPlugin(DefaultClusterSetup):
    """Set up Grid Engine on nodes that ``disable_queue`` left without it; set slots on all nodes.

    Args:
        master_is_exec_host: Whether the master also runs jobs.
        slots_per_host: Concurrent jobs on a node. Default: its number of processors.
        gridengine_packages: Directory or URL of Grid Engine packages, for images whose own crash.
    """

    def __init__(
        self,
        master_is_exec_host: str = "true",
        slots_per_host: str = "",
        gridengine_packages: str = "",
    ) -> None:
        super().__init__()
        self._on_master = str(master_is_exec_host).lower() not in _FALSE
        if slots_per_host and not str(slots_per_host).isdigit():
            raise ConfigError(
                f"sge: invalid slots_per_host '{slots_per_host}'",
                "Set a number: slots_per_host = 4",
            )
        self._slots = str(slots_per_host)
        self._packages = directory_or_url(gridengine_packages) if gridengine_packages else ""

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Set up Grid Engine on all nodes."""
        self._bring(nodes, nodes, master, self._options(user, user_shell, volumes))

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Set up Grid Engine on the new node."""
        self._bring([node], nodes, master, self._options(user, user_shell, volumes))

    def on_remove_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Remove the node from Grid Engine; other nodes rerun its jobs."""
        steps.forget(master, [node.alias])

    def _bring(
        self, new: Sequence[Node], nodes: Sequence[Node], master: Node, options: steps.SetupOptions
    ) -> None:
        known = self._known(master)
        missing = [node for node in new if node.alias not in known]
        if missing:
            self._set_up(missing, nodes, master, options)
        if self._slots:
            for node in new:
                _qconf(master, "-mattr", "queue", "slots", f"[{node.alias}={self._slots}]")
        if not self._on_master and master in new:
            steps.disable(master, [master.alias])
            _qconf(master, "-mattr", "queue", "slots", f"[{master.alias}=0]")

    def _options(self, user: str, shell: str, volumes: Any) -> steps.SetupOptions:
        given = (Volume(name=name, **dict(volume)) for name, volume in (volumes or {}).items())
        mounted = tuple(volume for volume in given if volume.kind is not Kind.S3)
        return steps.SetupOptions(user=user, shell=shell, volumes=mounted, packages=self._packages)

    def _known(self, master: Node) -> set[str]:
        answer = master.ssh.execute("qconf -sel 2>/dev/null", ignore_exit_status=True)
        return {line.strip() for line in answer}

    def _set_up(
        self, new: Sequence[Node], nodes: Sequence[Node], master: Node, options: steps.SetupOptions
    ) -> None:
        found = ThreadPool().map(lambda node: steps.prepare(node, nodes, master, options), new)
        workers = [node for node in nodes if node is not master]
        base = steps.start_master(master, workers, options)
        steps.register(master, dict(zip(new, found, strict=True)))
        for_each(new, lambda node: steps.join(node, master, base, options))
        missing_reports = steps.without_report(master, new)
        if missing_reports:
            why = "sge_execd does not report to the master"
            raise failures(dict.fromkeys(missing_reports, why), len(new))
        steps.enable(master, [node.alias for node in new])


def _qconf(master: Node, *arguments: str) -> None:
    master.ssh.execute(f"qconf {shlex.join(arguments)} {steps.QUEUE}")
