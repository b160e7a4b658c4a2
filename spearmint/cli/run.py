"""``spearmint run``: search, the command's main job."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from spearmint.cli.setting_options import GroupedCommand, options_of
from spearmint.errors import InputError
from spearmint.layout import TrialFolder
from spearmint.resources import Resources
from spearmint.run_options import RunOptions


@click.command(
    cls=GroupedCommand, short_help="Run the search of a config.pb (the default command)."
)
@click.argument("config", type=click.Path(path_type=Path), required=False)
@options_of(RunOptions)
@options_of(
    Resources, group="What each trial needs of a queue, over config.pb's resources", defaults=False
)
@click.option("--run-job", type=click.Path(path_type=Path), help="Run one trial folder, here.")
def run(config: Path | None, run_job: Path | None, **options: Any) -> None:
    """Search the hyperparameters that CONFIG, a config.pb or its directory, declares.

    The same command continues a search that stopped, for whatever reason. Press Ctrl-C once to
    start no more trials and wait for those that run, twice to end them. With Grid Engine, Ctrl-C
    leaves the jobs in the queue; the same command finds them again, and --cancel ends them.

    \b
    Examples:
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --pruner=median --patience=20 --max-time=2h experiment/config.pb
      spearmint --driver=SGE --gpus=1 --walltime=4h --queue-ahead=2 experiment/config.pb
    """
    if run_job is not None:
        _run_job(run_job)
    if config is None:
        raise click.UsageError("Missing argument 'CONFIG': a config.pb or its directory.")
    from spearmint.cli.run_search import run_search

    run_search(config, options)


def _run_job(folder: Path) -> None:
    """Run one trial in the foreground and exit with the runner's status."""
    folder = folder.parent if folder.is_file() else folder
    result = TrialFolder(folder).result
    if result.exists():
        raise InputError(
            f"the trial in {folder} has its result already",
            f"To run it again: {shlex.join(['rm', str(result)])}",
        )
    argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", str(folder)]
    sys.exit(subprocess.run(argv, check=False).returncode)
