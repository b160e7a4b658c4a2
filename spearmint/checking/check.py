"""Check a whole search, of all its regions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from spearmint.checking.problem import Problem
from spearmint.checking.trials import record_problems, trial_problems
from spearmint.config.reader import load_experiment
from spearmint.controller.direct import apply_requests
from spearmint.drivers import DriverSettings, make_driver
from spearmint.errors import ConfigError, next_command
from spearmint.layout import Layout
from spearmint.model import Experiment
from spearmint.requests.inbox import Inbox
from spearmint.store.feasibility import require_feasible
from spearmint.store.lock import holder_of
from spearmint.store.owner import read_ownership, storage_url
from spearmint.store.session import Session, known_regions, read_sessions, run_sessions
from spearmint.store.sql.sqlite import file_of


def check_search(config: Path, storage: str | None, *, fix: bool) -> list[Problem]:
    """Return the problems of the search of ``config``, and repair those that can be with ``fix``.

    Without ``fix``, nothing is written. While a controller runs, what it is about to do itself is
    not a problem.

    Raises:
        AlreadyRunning: A controller runs, and ``fix`` is true.
        NoSearch: The experiment was never run.
    """
    layout = Layout(load_experiment(config).directory)
    damage = list(_damage(layout, storage))
    if damage:
        return damage
    runs = holder_of(layout) is not None
    if not fix:
        sessions = read_sessions(config, storage)
        return list(_problems(sessions, _driver_name(layout), runs=runs))
    read_sessions(config, storage)  # raises if there is no search
    experiment, driver = known_regions(load_experiment(config)), _driver_name(layout)
    with run_sessions(experiment, storage, driver=driver) as sessions:
        found = list(_problems(sessions, driver, runs=False))
        for problem in found:
            if problem.repair is not None:
                problem.repair()
                problem.is_repaired = True
        _write_records(sessions)
    return found


def _write_records(sessions: list[Session]) -> None:
    """Write the best trials that changed by repairs."""
    for session in sessions:
        for problem in record_problems(session):
            if problem.repair is not None:
                problem.repair()


def _driver_name(layout: Layout) -> str:
    known = read_ownership(layout)
    return known.driver if known is not None else "local"


def _problems(sessions: list[Session], driver_name: str, *, runs: bool) -> Iterator[Problem]:
    layout = sessions[0].layout
    yield from _conflicts(sessions[0].experiment)
    names = Inbox(layout).names()
    if names and not runs:
        yield Problem(
            f"{len(names)} requests of add, retry or stop are not applied",
            "They are applied now, or by the next run.",
            lambda: apply_requests(sessions, driver_name),
        )
    driver = make_driver(driver_name, DriverSettings(directory=layout.root))
    for session in sessions:
        yield from trial_problems(session, driver, runs=runs)


def _conflicts(experiment: Experiment) -> Iterator[Problem]:
    """Yield a problem if no point meets the linear constraints."""
    try:
        require_feasible(experiment)
    except ConfigError as error:
        yield Problem(error.what, error.fix)


def _damage(layout: Layout, storage: str | None) -> Iterator[Problem]:
    """Yield a problem if the SQLite file is damaged."""
    file = file_of(storage_url(layout, storage))
    if file is None or not file.exists():
        return
    try:
        uri = f"{file.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=60)) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        answer = str(error)
    if answer != "ok":
        yield Problem(
            f"the database {file} is damaged: {answer}",
            f"Restore a copy. Or move it away, export what it has with the program sqlite3 "
            f"(.recover), and import that: {next_command('import', layout.root)} ...",
        )
