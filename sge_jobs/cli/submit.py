"""``sge-jobs submit``: queue a job or an array."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path

from sge_jobs.cli.job_options import add_job_arguments, job_spec
from sge_jobs.cli.output import say
from sge_jobs.model import JobSpec
from sge_jobs.queue.qsub import job_script, qsub_argv
from sge_jobs.queue.queue import Queue

HELP = """\
Queue a program as one job, or as an array of tasks, and print the number of the job.

Its output is appended to --log, of which each task of an array has its own (LOG.7); without it, to
NAME.oJOB where the job starts.

examples:
  sge-jobs submit --gpus=1 --time=2h --venv=/shared/venv -- python train.py
  sge-jobs submit --tasks=1-41 --concurrent=6 --log=logs/region -- ./train_region.sh
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--log", type=Path, metavar="FILE", help="append its output to this file")
    parser.add_argument("--tasks", default="", metavar="A-B", help="tasks of an array: 1-41")
    parser.add_argument(
        "--concurrent", type=int, metavar="N", help="tasks that may run at once; default: all"
    )
    add_job_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Queue the job and print its number."""
    log = arguments.log.absolute() if arguments.log else None
    spec = dataclasses.replace(
        job_spec(arguments, log=log),
        tasks=arguments.tasks,
        concurrent_tasks=arguments.concurrent,
    )
    if arguments.dry_run:
        say(dry_run(spec))
        return 0
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    say(Queue().submit(spec))
    return 0


def dry_run(spec: JobSpec) -> str:
    """Return the qsub line and the script that it would read."""
    return f"qsub {shlex.join(qsub_argv(spec))} <<'END'\n{job_script(spec)}END"
