"""Packages of a node's distribution: a part of :class:`starcluster.node.Node`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starcluster.node.shell import Shell

_APT = (
    "DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -q -y "
    "-o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold"
)
# apt-get does not wait for the lock of the package lists, and other programs update them at boot.
_APT_UPDATE = f"for pause in 5 15 30 60 0; do {_APT} update && break; sleep $pause; done"


class NodePackages:
    """Installs packages on one node."""

    @property
    def ssh(self) -> Shell:
        """The node's connection."""
        raise NotImplementedError

    @property
    def package_provider(self) -> str:
        """``apt`` or ``yum``."""
        return "apt" if self.ssh.which("apt-get") else "yum"

    def apt_command(self, cmd: str) -> None:
        """Run apt-get; ``cmd`` such as ``install htop`` or ``update``."""
        self.ssh.execute(f"{_APT} {cmd}")

    def apt_install(self, pkgs: str | Iterable[str]) -> None:
        """Install Debian packages; if that fails, update the package lists and retry."""
        names = _words(pkgs)
        self.ssh.execute(f"{_APT} install {names} || {{ {_APT_UPDATE}; {_APT} install {names}; }}")

    def yum_command(self, cmd: str) -> None:
        """Run dnf or yum; ``cmd`` such as ``install htop``."""
        self.ssh.execute(f"$(command -v dnf || command -v yum) -y -q {cmd}")

    def yum_install(self, pkgs: str | Iterable[str]) -> None:
        """Install packages of Red Hat or Amazon Linux."""
        self.yum_command(f"install {_words(pkgs)}")

    def package_install(self, pkgs: str | Iterable[str]) -> None:
        """Install packages with the package manager of the node."""
        if self.package_provider == "apt":
            self.apt_install(pkgs)
        else:
            self.yum_install(pkgs)


def _words(names: str | Iterable[str]) -> str:
    words = names.split() if isinstance(names, str) else names
    return " ".join(map(shlex.quote, words))
