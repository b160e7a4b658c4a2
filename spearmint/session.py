"""An experiment opened for reading or running: config, directory and study together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spearmint.config import load_experiment
from spearmint.errors import InputError
from spearmint.layout import Layout, read_json, write_json
from spearmint.lock import ExperimentLock, owner_token
from spearmint.model import Experiment
from spearmint.sqlite import sqlite_url
from spearmint.study import Study, open_study


@dataclass(frozen=True, slots=True)
class Session:
    """What every command works on."""

    experiment: Experiment
    layout: Layout
    study: Study


@contextmanager
def run_session(config: Path, storage: str | None) -> Iterator[Session]:
    """Hold the experiment alone, to run it; its study is created when there is none.

    Raises:
        AlreadyRunning: Another controller holds it.
        InputError, StorageError: See there.
    """
    experiment = load_experiment(config)
    layout = Layout(experiment.directory)
    with ExperimentLock(layout):
        token = owner_token(layout, experiment.name)
        url = storage_url(layout, storage)
        study = open_study(experiment, url)
        study.claim(token)
        _remember(layout, url)
        study.enqueue_seed_points()
        yield Session(experiment, layout, study)


def read_session(config: Path, storage: str | None) -> Session:
    """Open an experiment to look at it; a controller may run meanwhile.

    Raises:
        InputError: It was never run.
    """
    experiment = load_experiment(config)
    layout = Layout(experiment.directory)
    url = storage_url(layout, storage)
    if url == sqlite_url(layout.database) and not layout.database.exists():
        raise InputError(
            f"no search in {layout.root} yet", f"Start it: spearmint {experiment.path}"
        )
    return Session(experiment, layout, open_study(experiment, url))


def storage_url(layout: Layout, given: str | None) -> str:
    """Return the storage named on the command line, else that of the last run, else SQLite."""
    known = read_json(layout.experiment) or {}
    return given or known.get("storage") or sqlite_url(layout.database)


def _remember(layout: Layout, url: str) -> None:
    """Keep a storage URL for later commands; a URL with a password is not written down."""
    known = read_json(layout.experiment) or {}
    is_default = url == sqlite_url(layout.database)
    has_password = "@" in url and ":" in url.partition("://")[2].rpartition("@")[0]
    kept = None if is_default or has_password else url
    if known.get("storage") != kept:
        write_json(layout.experiment, {**known, "storage": kept})
