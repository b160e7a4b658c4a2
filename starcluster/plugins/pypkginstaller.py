"""``setup_class = starcluster.plugins.pypkginstaller.PyPkgInstaller``: Python packages."""

from __future__ import annotations

import shlex
from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import ConfigError
from starcluster.logger import log
from starcluster.node import Node


class PyPkgInstaller(DefaultClusterSetup):
    """Install Python packages on every node by pip, into ``python``'s own installation.

    Args:
        packages: With commas or spaces between them, each as pip takes it.
        python: The interpreter.
    """

    def __init__(self, packages: str = "", python: str = "python3") -> None:
        super().__init__()
        self._packages = packages.replace(",", " ").split()
        self._python = python
        if not self._packages:
            raise ConfigError("pypkginstaller: no packages", "Name some: packages = numpy, scipy")

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install on all nodes at once."""
        log.info("Installing on %d nodes: %s", len(nodes), " ".join(self._packages))
        for_each(nodes, self._install)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Install on the new node."""
        self._install(node)

    def _install(self, node: Node) -> None:
        if node.ssh.run([self._python, "-m", "pip", "--version"]).status:
            node.package_install("python3-pip")
        pip = [self._python, "-m", "pip", "install", "--quiet", *self._packages]
        # Debian marks its Python as managed by apt; whoever names packages here means that one.
        node.ssh.execute(f"PIP_BREAK_SYSTEM_PACKAGES=1 {shlex.join(pip)}")
