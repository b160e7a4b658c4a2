"""Tune the NVIDIA driver as AWS recommends.

``setup_class = starcluster_plugins.nvidia_tune.NvidiaTune``. The decisions are in
:mod:`starcluster_plugins.nvidia_facts`; this module carries them out.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from starcluster.clustersetup import ClusterSetup, for_each
from starcluster.errors import ConfigError, NodeError
from starcluster.logger import log
from starcluster.node import Node
from starcluster_plugins import nvidia_driver, nvidia_facts
from starcluster_plugins.nvidia_facts import Gpu
from starcluster_plugins.remote import TOOLS_PYTHON, is_true, with_tools

_MULC_ROW = "1000000x10000"


class NvidiaTune(ClusterSetup):
    """Tune the NVIDIA driver on every node; every node except the master must have a GPU.

    Args:
        clocks: ``"MEMORY,GRAPHICS"`` in MHz; empty for the highest clocks of each card.
        driver: Package version to install on nodes without a driver: ``580-server`` on Ubuntu,
            ``535`` or ``535-open`` on Debian 12, or ``default``, the driver of the distribution.
        measure: Whether to time the MulC kernel before and after.
    """

    def __init__(self, clocks: str = "", driver: str = "", measure: str = "") -> None:
        super().__init__()
        if clocks and not re.fullmatch(r"\d+,\d+", clocks):
            raise ConfigError(
                f"nvidia_tune: invalid clocks = {clocks}: expected MEMORY,GRAPHICS in MHz",
                "Set both, e.g. clocks = 1593,1410",
            )
        if driver and not re.fullmatch(r"(\d+(-server)?|default)(-open)?", driver):
            raise ConfigError(
                f"nvidia_tune: invalid driver = {driver}: expected a package version",
                "Set a version, e.g. driver = 580-server",
            )
        self._clocks, self._driver = clocks, driver
        self._measure = is_true(measure)

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Tune all nodes concurrently; one error names every node that failed."""
        for_each(nodes, self._tune)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Tune only the new node."""
        for_each([node], self._tune)

    def _tune(self, node: Node) -> None:
        gpus = self._gpus(node)
        if not gpus:
            log.info("%s: no NVIDIA GPU on %s, nothing to tune", node.alias, node.instance_type)
            return
        before = self._mulc(node) if self._measure else []
        self._check(node, gpus[0].driver)
        self._persist(node)
        if nvidia_facts.wants_auto_boost_off(node.instance_type):
            self._set(node, "auto-boost", ["--auto-boost-default=0"])
        for gpu, clocks in zip(gpus, self._wanted_clocks(node, gpus), strict=True):
            self._set_clocks(node, gpu, clocks)
        self._fabric(node, gpus)
        if self._measure:
            for name, lines in (("before", before), ("after", self._mulc(node))):
                log.info("%s: MulC %s: %s", node.alias, name, "; ".join(lines))

    def _gpus(self, node: Node) -> list[Gpu]:
        """Return the GPUs of the node; at least one, except on a master without a card."""
        gpus = nvidia_driver.gpus(node)
        if not gpus and node.is_master() and not nvidia_driver.has_device(node):
            return []
        if not gpus and self._driver:
            nvidia_driver.install(node, self._driver)
            gpus = nvidia_driver.gpus(node)
        if not gpus:
            raise NodeError(
                f"no working NVIDIA driver on {node.instance_type}",
                "Use an AMI that has the driver, set a version to install (driver = 580-server), or"
                " remove the plugin.",
                alias=node.alias,
            )
        return gpus

    def _check(self, node: Node, driver: str) -> None:
        found = nvidia_driver.parameter(node)
        decision = nvidia_facts.decide_check(
            modinfo=found.modinfo,
            params=found.params,
            configured=found.configured,
            driver=driver,
        )
        log.info("%s: %s", node.alias, decision.words)
        if decision.write:
            nvidia_driver.keep_check_off(node)
        if decision.reload:
            nvidia_driver.turn_check_off(node)
            log.info(
                "%s: %s: is 0 after a reload of the driver", node.alias, nvidia_facts.PARAMETER
            )

    def _persist(self, node: Node) -> None:
        enable = ["systemctl", "enable", "--now", "nvidia-persistenced"]
        if not node.ssh.which("systemctl") or node.ssh.run(enable).status:
            node.ssh.run(["nvidia-smi", "-pm", "1"])
        off = [gpu.index for gpu in nvidia_driver.gpus(node) if not gpu.persistent]
        if off:
            raise NodeError(
                f"GPU {', '.join(off)}: cannot turn persistence mode on",
                "Check: nvidia-smi -q -d ROW_REMAPPER,ECC; journalctl -u nvidia-persistenced",
                alias=node.alias,
            )
        log.info("%s: persistence mode is on", node.alias)

    def _wanted_clocks(self, node: Node, gpus: list[Gpu]) -> list[str]:
        if self._clocks:
            return [self._clocks] * len(gpus)
        answer = node.ssh.run(["nvidia-smi", "-q", "-d", "SUPPORTED_CLOCKS"])
        highest = list(nvidia_facts.highest_clocks(answer.stdout).values())
        return highest if len(highest) == len(gpus) else [""] * len(gpus)

    def _set_clocks(self, node: Node, gpu: Gpu, clocks: str) -> None:
        if clocks == gpu.clocks or not (clocks or self._clocks):
            now = gpu.clocks or "not settable on this card"
            log.info("%s: GPU %s: application clocks: %s", node.alias, gpu.index, now)
            return
        self._set(node, f"GPU {gpu.index}: clocks {clocks}", ["-i", gpu.index, "-ac", clocks])

    def _set(self, node: Node, what: str, arguments: list[str]) -> None:
        answer = node.ssh.run(["nvidia-smi", *arguments])
        words = (answer.stdout + answer.stderr).strip()
        wrong = (
            "Specified clock combination" in words
        )  # a mistake of the user, not a missing feature
        if re.search(r"not supported", words, re.I) and not wrong:
            log.info("%s: %s: not supported by this card", node.alias, what)
        elif answer.status:
            call = shlex.join(["nvidia-smi", *arguments])
            raise NodeError(
                f"{call}: {words}",
                "List the clocks of the card: nvidia-smi -q -d SUPPORTED_CLOCKS",
                alias=node.alias,
            )
        else:
            log.info("%s: %s: set", node.alias, what)

    def _fabric(self, node: Node, gpus: list[Gpu]) -> None:
        if not nvidia_facts.needs_fabric_manager(node.instance_type, gpus):
            return
        version, active = nvidia_driver.fabric_manager(node)
        problem = nvidia_facts.fabric_manager_problem(version, gpus[0].driver, active=active)
        if problem:
            raise NodeError(problem, alias=node.alias)
        log.info("%s: Fabric Manager %s is running", node.alias, gpus[0].driver)

    def _mulc(self, node: Node) -> list[str]:
        with_tools(node)
        argv = [*TOOLS_PYTHON, "-m", "sge_jobs.node.selftest.mulc", "--row", _MULC_ROW]
        answer = node.ssh.run(argv, timeout_s=600)
        return (answer.stdout or answer.stderr).strip().splitlines()
