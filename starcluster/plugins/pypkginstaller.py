"""``setup_class = starcluster.plugins.pypkginstaller.PyPkgInstaller``: install Python packages."""

from __future__ import annotations

import shlex

from starcluster.node.node import Node
from starcluster.plugins._installing import Installer


class PyPkgInstaller(Installer):
    """Install Python packages on every node with pip, into the installation of ``python``.

    Args:
        packages: Requirements of pip, separated by commas or spaces.
        python: The Python interpreter.
    """

    section = "pypkginstaller"
    example = "numpy, scipy"

    def __init__(self, packages: str = "", python: str = "python3") -> None:
        super().__init__(packages)
        self._python = python

    def install(self, node: Node) -> None:
        """Install with pip; install pip first if it is missing."""
        if node.ssh.run([self._python, "-m", "pip", "--version"]).status:
            node.package_install("python3-pip")
        pip = [self._python, "-m", "pip", "install", "--quiet", *self._packages]
        # Debian marks its Python as managed by apt, but the user asked for packages in it.
        node.ssh.execute(f"PIP_BREAK_SYSTEM_PACKAGES=1 {shlex.join(pip)}")
