"""What all packages share: missing packages, standard streams, Python 2, the bill of a cluster."""

from __future__ import annotations

from starmint.install import extra_command, install_command

__all__ = ["extra_command", "install_command"]
