"""The ``condor-jobs`` command."""

from condor_jobs.cli.main import build_parser, main

__all__ = ["build_parser", "main"]
