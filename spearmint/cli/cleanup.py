"""``spearmint cleanup``: delete a search."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path

import click

from spearmint.cli.options import config_argument, storage_option
from spearmint.config import load_experiment
from spearmint.errors import InputError
from spearmint.layout import Layout
from spearmint.living import living_jobs
from spearmint.lock import ExperimentLock
from spearmint.ownership import Ownership, read_ownership, storage_url
from spearmint.sqlite import sqlite_url
from spearmint.studies import delete_study, study_names, study_owner


@click.command()
@config_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask; asked only on a terminal.")
@storage_option
def cleanup(config: Path, yes: bool, storage: str | None) -> None:
    """Delete every trial and file that searches left in DIR; config.pb and code stay.

    Trials that still run are ended.

    \b
    Examples:
      spearmint cleanup examples/branin
      spearmint cleanup --yes examples/digits
    """
    layout = Layout(load_experiment(config).directory)
    known = read_ownership(layout)
    if known is None and not layout.database.exists():
        raise InputError(f"no search in {layout.root}", "Nothing was deleted.")
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete all trials in {layout.root}?", abort=True)
    url = storage_url(layout, storage)
    with ExperimentLock(layout):
        if known is not None:
            driver, jobs = living_jobs(layout, known)
            driver.cancel(jobs)
            for text in driver.notices():
                click.echo(text)
            if url != sqlite_url(layout.database):
                _delete_studies(known, url)
        _delete_files(layout)
    click.echo(f"Deleted the search in {layout.root}")


def _delete_studies(known: Ownership, url: str) -> None:
    names = {f"{known.name}@{region}" for region in known.regions} or {known.name}
    stored = sorted(names.intersection(study_names(url)))
    for name in stored:
        owner = study_owner(name, url)
        if owner is not None and owner["token"] != known.token:
            raise InputError(
                f"the search {name!r} in this storage is run from {owner['root']} on "
                f"{owner['host']}",
                "Nothing was deleted; run cleanup there.",
            )
    for name in stored:
        delete_study(name, url)


def _delete_files(layout: Layout) -> None:
    for trial in layout.jobs.glob("*/"):
        shutil.rmtree(trial, ignore_errors=True)
    with contextlib.suppress(OSError):
        layout.jobs.rmdir()  # not with job files of the original Spearmint in it
    for folder in (layout.outputs, layout.regions, layout.report):
        shutil.rmtree(folder, ignore_errors=True)
    database, best = layout.database, layout.best
    beside = [database.with_name(f"{database.name}-{end}") for end in ("journal", "wal", "shm")]
    for file in (database, *beside, layout.trace, best, best.with_name(f".{best.name}.part")):
        file.unlink(missing_ok=True)
    shutil.rmtree(layout.lock.parent, ignore_errors=True)
