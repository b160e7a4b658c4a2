"""The ``starcluster`` command."""

from starcluster.cli.main import main

__all__ = ["main"]
