"""``condor-jobs search``: run a search as a job on this host."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from condor_jobs.cli.options import directory_of, search_options
from condor_jobs.commands import ask
from condor_jobs.description import manager_job
from condor_jobs.errors import SubmitError

HELP = """\
Run a search as a job on this host, which HTCondor restarts after a reboot.

The job is in the local universe: it needs no slot. Hold, release, a restart of HTCondor and
kill -9 continue the search; condor_rm ends it, and its trials continue until the next search.
The output is appended to DIR/search.log. Options after -- are those of spearmint run; without
--driver it is HTCONDOR.

Examples:
  condor-jobs search digits -- --max-finished-jobs=40
  condor-jobs search digits --dry-run
"""


def add_arguments(parser: argparse.ArgumentParser, options: argparse._ArgumentGroup) -> None:
    """Declare the options."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="Directory with a config.pb.")
    help = "Print the submit description and submit nothing."
    options.add_argument("--dry-run", action="store_true", help=help)


def run(arguments: argparse.Namespace, options: Sequence[str]) -> str:
    """Submit the job; return what to print."""
    directory = directory_of(arguments.directory)
    words = ["run", str(directory), *search_options(options)]
    description = manager_job(words, directory, f"search {directory.name}")
    if arguments.dry_run:
        return description.rstrip()
    answer = ask(["condor_submit", "-terse", "-"], stdin=description).strip()
    number = answer.rpartition("\n")[2].partition(" ")[0]
    if not number:
        raise SubmitError(f"condor_submit refused the job: {answer or 'no message'}")
    return f"Submitted as job {number}. Its output: {directory / 'search.log'}"
