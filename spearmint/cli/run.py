"""``spearmint run``: run a search."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import cloup

from spearmint.cli.setting_options import options_of
from spearmint.errors import InputError
from spearmint.layout import TrialFolder
from spearmint.resources import Resources
from spearmint.run_options import RunOptions


@cloup.command()
@cloup.argument(
    "config",
    type=click.Path(path_type=Path),
    required=False,
    help="A config.pb, or the directory that contains it.",
)
@options_of(RunOptions)
@options_of(
    Resources,
    heading="Resources of each trial",
    about="Only for drivers with a queue, such as SGE. They override the block resources of "
    "config.pb.",
    defaults=False,
)
@click.option("--run-job", type=click.Path(path_type=Path), hidden=True)
def run(config: Path | None, run_job: Path | None, **options: Any) -> None:
    """Run the search of a config.pb, or continue it (the default command).

    Rerun the command to continue a search that stopped, for any reason. Press Ctrl-C once to
    start no more trials and wait for the running ones, and twice to terminate them. With a
    queue, Ctrl-C leaves the jobs in it: rerun the command to follow them, or add --cancel to
    terminate them.

    \b
    Examples:
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --learn-from=last_month --learn-from=/home/ann/digits digits/config.pb
      spearmint --pruner=median --patience=20 --max-time=2h experiment/config.pb
      spearmint --driver=SGE --gpus=1 --walltime=4h --queue-ahead=2 experiment/config.pb
      spearmint --driver=SLURM --queue=gpu --project=lab --qos=long experiment/config.pb
      spearmint --driver=SGE --budget=20 --then=terminate experiment/config.pb
    """
    if run_job is not None:
        _run_job(run_job)
    if config is None:
        raise click.UsageError("Missing argument 'CONFIG': a config.pb or its directory.")
    from spearmint.cli.run_search import run_search

    run_search(config, options)


def _run_job(folder: Path) -> None:
    """Run one trial in the foreground and exit with the status of its runner."""
    folder = folder.parent if folder.is_file() else folder
    result = TrialFolder(folder).result
    if result.exists():
        raise InputError(
            f"the trial in {folder} already has a result",
            f"To rerun it, delete the result first: {shlex.join(['rm', str(result)])}",
        )
    argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", str(folder)]
    sys.exit(subprocess.run(argv, check=False).returncode)
