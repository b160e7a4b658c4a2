"""What all packages of starmint share: missing packages, Python 2, and the bill of a cluster."""

from __future__ import annotations

from starmint.install import extra_command, install_command

__all__ = ["extra_command", "install_command"]
