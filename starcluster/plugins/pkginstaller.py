"""``setup_class = starcluster.plugins.pkginstaller.PackageInstaller``: packages on every node."""

from __future__ import annotations

from starcluster.node.node import Node
from starcluster.plugins._installing import Installer


class PackageInstaller(Installer):
    """Install the distribution's packages; ``packages`` with commas or spaces between them."""

    section = "pkginstaller"
    example = "htop, git"

    def install(self, node: Node) -> None:
        """Install by what the node has for that."""
        node.package_install(self._packages)
