"""``setup_class = starcluster.plugins.pkginstaller.PackageInstaller``: install packages."""

from __future__ import annotations

from starcluster.node.node import Node
from starcluster.plugins._installing import Installer


class PackageInstaller(Installer):
    """Install packages of the distribution on every node.

    Args:
        packages: Names, separated by commas or spaces.
    """

    section = "pkginstaller"
    example = "htop, git"

    def install(self, node: Node) -> None:
        """Install with the package manager of the node."""
        node.package_install(self._packages)
