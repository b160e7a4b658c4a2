"""What the plugins that install packages share."""

from __future__ import annotations

from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import ConfigError
from starcluster.logger import log
from starcluster.node.node import Node


class Installer(DefaultClusterSetup):
    """Installs ``packages``, with commas or spaces between them, on every node.

    Attributes:
        section: The plugin's name, for messages.
        example: Packages that such a plugin might install.
    """

    section = ""
    example = ""

    def __init__(self, packages: str = "") -> None:
        super().__init__()
        self._packages = packages.replace(",", " ").split()
        if not self._packages:
            raise ConfigError(
                f"{self.section}: no packages", f"Name some: packages = {self.example}"
            )

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install on all nodes at once."""
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
