"""The ``sge-jobs`` command; argparse and the standard library only."""

from sge_jobs.cli.main import main

__all__ = ["main"]
