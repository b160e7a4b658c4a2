"""What all packages of starmint share: how to install a missing package, and Python 2."""

from __future__ import annotations

from starmint.install import extra_command, install_command

__all__ = ["extra_command", "install_command"]
