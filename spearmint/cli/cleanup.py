"""``spearmint cleanup``: delete a search."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from spearmint.cli.options import config_argument, storage_option
from spearmint.config import load_experiment
from spearmint.layout import Layout
from spearmint.lock import ExperimentLock
from spearmint.session import storage_url
from spearmint.sqlite import sqlite_url
from spearmint.study import delete_study


@click.command()
@config_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask; asked only on a terminal.")
@storage_option
def cleanup(config: Path, yes: bool, storage: str | None) -> None:
    """Delete every trial and file that searches left in DIR; config.pb and code stay.

    \b
    Examples:
      spearmint cleanup examples/branin
      spearmint cleanup --yes examples/digits
    """
    experiment = load_experiment(config)
    layout = Layout(experiment.directory)
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete all trials of {experiment.name!r} in {layout.root}?", abort=True)
    with ExperimentLock(layout):
        url = storage_url(layout, storage)
        if url != sqlite_url(layout.database):
            delete_study(experiment, url)
        _delete_files(layout)
    click.echo(f"Deleted the search in {layout.root}")


def _delete_files(layout: Layout) -> None:
    for folder in (layout.jobs, layout.outputs, layout.report):
        shutil.rmtree(folder, ignore_errors=True)
    database = layout.database
    beside = [database.with_name(f"{database.name}-{end}") for end in ("journal", "wal", "shm")]
    for file in (database, *beside, layout.trace, layout.best):
        file.unlink(missing_ok=True)
    shutil.rmtree(layout.lock.parent, ignore_errors=True)
