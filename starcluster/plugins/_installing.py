"""The base class of plugins that install packages."""

from __future__ import annotations

from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import ConfigError
from starcluster.logger import log
from starcluster.node.node import Node


class Installer(DefaultClusterSetup):
    """Installs ``packages``, separated by commas or spaces, on every node.

    Attributes:
        section: Name of the plugin in messages.
        example: Example packages for messages.
    """

    section = ""
    example = ""

    def __init__(self, packages: str = "") -> None:
        super().__init__()
        self._packages = packages.replace(",", " ").split()
        if not self._packages:
            raise ConfigError(
                f"{self.section}: no packages given", f"Set them: packages = {self.example}"
            )

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install on all nodes in parallel."""
        log.info("Installing on %d nodes: %s", len(nodes), " ".join(self._packages))
        for_each(nodes, self.install)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Install on the new node."""
        self.install(node)

    def install(self, node: Node) -> None:
        """Install on one node."""
        raise NotImplementedError
