"""The ``sge-jobs`` command; it uses only the standard library."""

from sge_jobs.cli.main import main

__all__ = ["main"]
