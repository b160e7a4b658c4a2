"""``sge-jobs scripts``: where the job scripts are."""

from __future__ import annotations

import argparse

from sge_jobs.cli.output import say
from sge_jobs.scripts import script_names, script_path

HELP = """\
Print where a job script for plain qsub is; without a name, the names there are.

examples:
  sge-jobs scripts
  qsub "$(sge-jobs scripts gpu_selftest)"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="job script")


def run(arguments: argparse.Namespace) -> int:
    """Print the path or the names."""
    if arguments.name:
        say(str(script_path(arguments.name)))
    for name in () if arguments.name else script_names():
        say(name)
    return 0
