"""Test the GPUs of all nodes and register them with Grid Engine.

``setup_class = starcluster_plugins.gpu_sge.GpuSge``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starcluster.clustersetup import ClusterSetup
from starcluster.errors import ConfigError, NodeError, SetupError, StarClusterError
from starcluster.logger import log
from starcluster.node import Node
from starcluster.threadpool import ThreadPool, failures
from starcluster_plugins.remote import TOOLS_PYTHON, with_tools

_FIND = "from sge_jobs.node.gpus.detect import detect; i = detect(); print(i.source, len(i.gpus))"
_SLACK_S = 600.0
_ADVICE = "qsub -l gpu="  # in a line of the self-test for users who start it without a GPU


class GpuSge(ClusterSetup):
    """Test the GPUs of each node and register them; a node that fails gets no jobs.

    Args:
        selftest_s: Duration of the self-test of each GPU in seconds; 0 skips it.
        gpus: Number of GPUs that every node must have; empty accepts any number.
    """

    def __init__(self, selftest_s: str = "20", gpus: str = "") -> None:
        super().__init__()
        for name, value in (("selftest_s", selftest_s), ("gpus", gpus or "0")):
            if not str(value).isdigit():
                raise ConfigError(
                    f"gpu_sge: invalid {name} '{value}': expected a whole number",
                    f"Set a number, e.g. {name} = 8",
                )
        self._seconds = int(selftest_s)
        self._wanted = int(gpus) if gpus else None

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Test all nodes concurrently, register those that pass, and report the others."""
        self._bring(nodes, master)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Test and register the new node."""
        self._bring([node], master)

    def _bring(self, nodes: Sequence[Node], master: Node) -> None:
        ended = dict(zip(nodes, ThreadPool().map(self._tested, nodes), strict=True))
        sound = {node.alias: found for node, found in ended.items() if isinstance(found, int)}
        if sound:
            counts = [f"--gpus={alias}={count}" for alias, count in sound.items()]
            master.ssh.execute(f"sge-jobs setup {' '.join(counts)}")
        for alias, count in sound.items():
            log.info("%s: %d GPUs registered", alias, count)
        bad = {node.alias: found for node, found in ended.items() if isinstance(found, str)}
        if bad:
            error = failures(bad, len(nodes))
            raise SetupError(error.what, "These nodes get no jobs.", failed=error.failed)

    def _tested(self, node: Node) -> int | str:
        """Return the number of GPUs that passed, or the problem."""
        try:
            with_tools(node)
            source, _, count = node.ssh.checked([*TOOLS_PYTHON, "-c", _FIND]).partition(" ")
            if self._wanted is not None and int(count) != self._wanted:
                return f"found {int(count)} GPUs, expected {self._wanted}"
            if int(count) and self._seconds:
                self._test(node, source)
        except (StarClusterError, OSError) as error:
            return error.what if isinstance(error, StarClusterError) else str(error)
        return int(count)

    def _test(self, node: Node, source: str) -> None:
        if source == "declared":
            log.info("%s: skipped the self-test: the GPUs are declared in a file", node.alias)
            return
        argv = [*TOOLS_PYTHON, "-m", "sge_jobs.node.selftest", "--quiet"]
        argv += ["--seconds", str(self._seconds), "--bad-exit", "1"]
        answer = node.ssh.run(argv, timeout_s=16 * self._seconds + _SLACK_S)
        if answer.status:
            lines = (answer.stdout + answer.stderr).strip().splitlines()
            words = [line for line in lines if _ADVICE not in line]
            raise NodeError("GPU self-test: " + "; ".join(words[-3:]), alias=node.alias)
