"""``condor-jobs dag``: search, retrain the best, evaluate and publish, for many regions."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from condor_jobs.chain import chains_of
from condor_jobs.cli.options import directory_of, search_options
from condor_jobs.dag import dag_files, submit_dag
from condor_jobs.description import Jobs
from condor_jobs.errors import InputError
from condor_jobs.text import request

HELP = """\
Submit a DAG: for each directory and region search, retrain the best, evaluate, publish.

The same command continues a DAG that failed or was removed, by DAGMan's rescue file: it runs
only what is missing. If a region fails, the others continue.

search    runs on this host, as a job in the local universe
retrain   a job with a GPU: reads $CONDOR_JOBS_BEST (JSON), writes to the directory
          $CONDOR_JOBS_MODEL; $CONDOR_JOBS_REGION is the region
evaluate  the same; its output is published, and it fails if the model must not be published
publish   replaces the link PUBLISH/NAME by a rename; NAME is DIRECTORY or DIRECTORY.REGION

Options after -- are those of spearmint run; without --driver it is HTCONDOR.

Examples:
  condor-jobs dag recommender --retrain="python retrain.py" --publish=/srv/models
  condor-jobs dag us de jp --retrain="python retrain.py" --evaluate="python evaluate.py" \\
      --publish=/srv/models -l request_memory=16G -- --max-finished-jobs=40 -n 8
"""


def add_arguments(parser: argparse.ArgumentParser, options: argparse._ArgumentGroup) -> None:
    """Declare the options."""
    help = "Directory with a config.pb."
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help=help)
    add = parser.add_argument_group("Steps").add_argument
    help = "Run this command with the best parameters; it writes a model. Required."
    add("--retrain", required=True, metavar="COMMAND", help=help)
    help = "Run this command on the model; if it fails, the model is not published. Default: none."
    add("--evaluate", default="", metavar="COMMAND", help=help)
    add("--publish", required=True, type=Path, metavar="DIR", help="Publish models here. Required.")
    add = parser.add_argument_group("Jobs of retrain and evaluate").add_argument
    help = "Request N GPUs for retrain and evaluate. Default: 1."
    add("--gpus", type=int, default=1, metavar="N", help=help)
    help = "Add this submit command to retrain and evaluate. Repeatable."
    add("-l", dest="requests", action="append", default=[], metavar="NAME=VALUE", help=help)
    add = options.add_argument
    help = "Keep the files of the DAG and the models here. Default: condor-dag."
    add("--work", type=Path, default=Path("condor-dag"), metavar="DIR", help=help)
    help = "Run all nodes again, also those that an unfinished DAG has done."
    add("--restart", action="store_true", help=help)
    add("--dry-run", action="store_true", help="Print the files and submit nothing.")


def run(arguments: argparse.Namespace, options: Sequence[str]) -> str:
    """Write and submit the DAG; return what to print."""
    if arguments.gpus < 0:
        raise InputError(f"--gpus must be at least 0, not {arguments.gpus}")
    jobs = Jobs(
        retrain=_command(arguments.retrain, "--retrain"),
        evaluate=_command(arguments.evaluate, "--evaluate") if arguments.evaluate else (),
        gpus=arguments.gpus,
        requests=dict(request(text) for text in arguments.requests),
    )
    directories = [directory_of(path) for path in arguments.directories]
    publish, work = arguments.publish.resolve(), arguments.work.resolve()
    chains = chains_of(directories, search_options(options), publish)
    files = dag_files(chains, work, jobs)
    if arguments.dry_run:
        return "\n".join(f"# {work / name}\n{text}" for name, text in files.items()).rstrip()
    return submit_dag(files, work, restart=arguments.restart)


def _command(text: str, option: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"{option}: {error}: {text!r}") from error
    if not words:
        raise InputError(f"{option} is empty")
    return words
