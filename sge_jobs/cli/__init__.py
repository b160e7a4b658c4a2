"""The ``sge-jobs`` command."""

from sge_jobs.cli.main import main

__all__ = ["main"]
