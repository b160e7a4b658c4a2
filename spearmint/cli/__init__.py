"""The ``spearmint`` command."""

from spearmint.cli.main import main

__all__ = ["main"]
