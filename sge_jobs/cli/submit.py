"""``sge-jobs submit``: submit a job or an array of tasks."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path

from sge_jobs.cli.job_options import add_job_arguments, job_spec
from sge_jobs.cli.output import say
from sge_jobs.errors import InputError
from sge_jobs.model import JobSpec
from sge_jobs.queue.qsub import job_script, qsub_argv
from sge_jobs.queue.queue import Queue

HELP = """\
Submit a program as a job, or as an array of tasks, and print the job number.

The output is appended to --log. Each task of an array has its own log, e.g. LOG.7 for task 7.
Without --log, the output goes to the file NAME.oJOB in the directory of the job.

Examples:
  sge-jobs submit --gpus=1 --time=2h --venv=/shared/venv -- python train.py
  sge-jobs submit --tasks=1-41 --concurrent=6 --log=logs/region -- ./train_region.sh
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common = add_job_arguments(parser)
    common.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="Append the output to this file. Default: NAME.oJOB.",
    )
    add = parser.add_argument_group("Array of tasks").add_argument
    help = "Submit one task for each of these numbers, e.g. 1-41 or 1-41:2. Default: one job."
    add("--tasks", default="", metavar="A-B", help=help)
    help = "Run at most this many tasks concurrently. Default: all."
    add("--concurrent", type=int, metavar="N", help=help)


def run(arguments: argparse.Namespace) -> int:
    """Submit the job and print its number."""
    log = arguments.log.absolute() if arguments.log else None
    spec = dataclasses.replace(
        job_spec(arguments, log=log),
        tasks=arguments.tasks,
        concurrent_tasks=arguments.concurrent,
    )
    if arguments.dry_run:
        say(dry_run(spec))
        return 0
    if log is not None and log.is_dir() and not spec.tasks:
        raise InputError(f"--log={arguments.log} is a directory", "Name a file in it.")
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    say(Queue().submit(spec))
    return 0


def dry_run(spec: JobSpec) -> str:
    """Return the qsub command with the script on its standard input, for a shell."""
    return f"qsub {shlex.join(qsub_argv(spec))} <<'END'\n{job_script(spec)}END"
