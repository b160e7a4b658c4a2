"""The ``spearmint`` command: its commands and their options."""

from spearmint.cli.main import main

__all__ = ["main"]
