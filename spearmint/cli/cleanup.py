"""``spearmint cleanup``: delete a search."""

from __future__ import annotations

import contextlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from spearmint.cli.options import config_argument, storage_option
from spearmint.errors import InputError
from spearmint.layout import Layout

if TYPE_CHECKING:
    from spearmint.store.owner import Ownership


@cloup.command()
@config_argument
@click.option(
    "-y", "--yes", is_flag=True, help="Do not ask for confirmation. Scripts are never asked."
)
@storage_option
def cleanup(config: Path, yes: bool, storage: str | None) -> None:
    """Delete a search: its trials, its files and its running jobs.

    config.pb, the code, final models, earlier generations and all other files stay.

    \b
    Examples:
      spearmint cleanup examples/branin
      spearmint cleanup --yes examples/digits
    """
    from spearmint.config.reader import load_experiment
    from spearmint.controller.orphans import find_orphaned_jobs
    from spearmint.store.lock import ExperimentLock
    from spearmint.store.owner import read_ownership, storage_url
    from spearmint.store.sql.sqlite import sqlite_url

    layout = Layout(load_experiment(config).directory)
    known = read_ownership(layout)
    if known is None and not layout.database.exists():
        raise InputError(f"no search in {layout.root}", "Nothing was deleted.")
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete all trials in {layout.root}?", abort=True)
    url = storage_url(layout, storage)
    with ExperimentLock(layout):
        if known is not None:
            driver, jobs = find_orphaned_jobs(layout, known)
            driver.cancel(jobs)
            for text in driver.notices():
                click.echo(text)
            if url != sqlite_url(layout.database):
                _delete_studies(known, url)
        _delete_files(layout)
    click.echo(f"Deleted the search in {layout.root}")


def _delete_studies(known: Ownership, url: str) -> None:
    from spearmint.store.opening import delete_study, study_names, study_owner

    names = {f"{known.name}@{region}" for region in known.regions} or {known.name}
    stored = sorted(names.intersection(study_names(url)))
    for name in stored:
        owner = study_owner(name, url)
        if owner is not None and owner["token"] != known.token:
            raise InputError(
                f"the search {name!r} in this storage belongs to {owner['root']} on "
                f"{owner['host']}",
                "Nothing was deleted. Run cleanup there.",
            )
    for name in stored:
        delete_study(name, url)


def _delete_files(layout: Layout) -> None:
    """Delete the files of searches and reports, and folders that are then empty."""
    regions = [replace(layout, region=path.name) for path in layout.regions.glob("*/")]
    for part in (*regions, layout):
        _delete_report(part.report / part.region)
        _delete_trials(part)
    _remove_empty(layout.regions)
    database = layout.database
    logs = [database.with_name(f"{database.name}-{end}") for end in ("journal", "wal", "shm")]
    for file in (database, *logs):
        file.unlink(missing_ok=True)
    shutil.rmtree(layout.lock.parent, ignore_errors=True)


def _delete_trials(layout: Layout) -> None:
    """Delete trials and records of one region, or of a search without regions."""
    for trial in layout.jobs.glob("*/"):
        if trial.name.isdecimal():
            shutil.rmtree(trial, ignore_errors=True)
    for output in layout.outputs.glob("*.out"):
        if output.stem.isdecimal():
            output.unlink()
    best = layout.best
    for file in (layout.trace, best, best.with_name(f".{best.name}.part")):
        file.unlink(missing_ok=True)
    for folder in (layout.batches, layout.finals):
        shutil.rmtree(folder, ignore_errors=True)
    _remove_empty(layout.jobs, layout.outputs)
    if layout.region:
        _remove_empty(layout.base)


def _delete_report(folder: Path) -> None:
    from spearmint.html_report import REPORT_FILES

    for name in REPORT_FILES:
        for file in (folder / name, *folder.glob(f".{name}.*")):
            file.unlink(missing_ok=True)
    _remove_empty(folder)


def _remove_empty(*folders: Path) -> None:
    """Remove the folders that are empty."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
