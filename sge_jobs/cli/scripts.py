"""``sge-jobs scripts``: paths of the job scripts."""

from __future__ import annotations

import argparse

from sge_jobs.cli.help import first_group
from sge_jobs.cli.output import say
from sge_jobs.scripts import script_names, script_path

HELP = """\
Print the path of a job script for plain qsub; without a name, list the names.

Examples:
  sge-jobs scripts
  sge-jobs scripts train_model
  qsub "$(sge-jobs scripts gpu_selftest)"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    help = "Job script, e.g. gpu_selftest. Default: list all names."
    parser.add_argument_group("Arguments").add_argument(
        "name", nargs="?", metavar="NAME", help=help
    )
    first_group(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the path of the script, or the names of all scripts."""
    if arguments.name:
        say(str(script_path(arguments.name)))
    for name in () if arguments.name else script_names():
        say(name)
    return 0
