"""The ``spearmint`` command: its options, and what each of its commands does."""

from spearmint.cli.main import main

__all__ = ["main"]
