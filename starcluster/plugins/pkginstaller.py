"""``setup_class = starcluster.plugins.pkginstaller.PackageInstaller``: packages on every node."""

from __future__ import annotations

from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import ConfigError
from starcluster.logger import log
from starcluster.node import Node


class PackageInstaller(DefaultClusterSetup):
    """Install the distribution's packages; ``packages`` with commas or spaces between them."""

    def __init__(self, packages: str = "") -> None:
        super().__init__()
        self._packages = packages.replace(",", " ").split()
        if not self._packages:
            raise ConfigError("pkginstaller: no packages", "Name some: packages = htop, git")

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
        node.package_install(self._packages)
