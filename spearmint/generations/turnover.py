"""Archive the finished generation of a search, and queue its best points for the next."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.controller.finals import has_final
from spearmint.controller.limits import StudyLimits
from spearmint.controller.tally import Tally
from spearmint.errors import InputError
from spearmint.fidelity import next_to_resume
from spearmint.layout import Layout, read_json, write_json
from spearmint.model import Experiment, Trial
from spearmint.requests.inbox import Action, Inbox, Request
from spearmint.store.distributions import to_flat
from spearmint.store.lock import ExperimentLock
from spearmint.store.owner import read_ownership, storage_url
from spearmint.store.session import Session, known_regions, read_sessions
from spearmint.store.sql.sqlite import sqlite_url
from spearmint.store.study import TOKEN
from spearmint.trial.languages import wrappers

_FEWEST_POINTS = 3
_DATABASE_S = 60.0


def turn_over(
    experiment: Experiment, storage: str | None, limits: StudyLimits, *, then_final: bool = False
) -> str:
    """Begin the next generation if this one is finished; return a message, or nothing to say.

    The files of the finished generation move to ``generations/NUMBER``, and the best points of each
    region are queued. What to do is written to a file first: after a kill at any step, the next
    call ends it.

    Args:
        experiment: The search.
        storage: URL of the storage; it must be the default file.
        limits: The search of a region is finished if it would start no more trials.
        then_final: Whether each region must have its final model first.

    Raises:
        AlreadyRunning: A controller runs.
        InputError: The trials are in another storage.
    """
    layout = Layout(experiment.directory)
    with ExperimentLock(layout):
        plan = read_json(layout.turnover)
        if plan is None:
            if read_ownership(layout) is None or not layout.database.exists():
                return ""  # the first generation
            if storage_url(layout, storage) != sqlite_url(layout.database):
                raise InputError(
                    f"--again needs the default storage, {layout.database}",
                    "Use a new directory for each generation instead, and spearmint import.",
                )
            plan = _plan(experiment, limits, then_final=then_final)
            if plan is None:
                return "The last generation is not finished: continuing it."
            write_json(layout.turnover, plan, durable=True)
        _move(known_regions(experiment), layout, plan)
        _queue(layout, plan)
        layout.turnover.unlink()
    return f"Generation {plan['generation']} is in {layout.generation(plan['generation'])}."


def _plan(
    experiment: Experiment, limits: StudyLimits, *, then_final: bool
) -> dict[str, Any] | None:
    """Return the number of the finished generation and its best points; None if it continues."""
    sessions = read_sessions(experiment.path, None)
    if not all(_is_finished(session, limits, then_final=then_final) for session in sessions):
        return None
    count = max(experiment.warm_start, _FEWEST_POINTS)
    layout = Layout(experiment.directory)
    numbers = [int(p.name) for p in layout.generations.glob("*/") if p.name.isdecimal()]
    points = {
        session.experiment.region: [
            to_flat(experiment.variables, trial.params) for trial in _best(session, count)
        ]
        for session in sessions
    }
    number = max(numbers, default=0) + 1
    return {"generation": number, "points": points, "token": _token(layout.database)}


def _best(session: Session, count: int) -> list[Trial]:
    """Return at most ``count`` best trials that meet the linear constraints.

    If none is complete, they are of the highest rung that any reached.
    """
    experiment, study = session.experiment, session.study
    most = None if experiment.linear else count
    trials = study.best(most) or study.at_highest_rung(most)
    return [trial for trial in trials if not experiment.violations(trial)][:count]


def _is_finished(session: Session, limits: StudyLimits, *, then_final: bool) -> bool:
    if session.study.running():
        return False
    tally = Tally(limits=limits, maximize=session.experiment.maximize)
    tally.restore(session.study)
    if not (tally.complete or tally.paused) or tally.wants_trial(0) or _resumes_paused(session):
        return False
    if not then_final or not tally.complete:  # paused trials have no final model
        return True
    return has_final(session.experiment, session.layout, session.study)


def _resumes_paused(session: Session) -> bool:
    fidelity = session.experiment.fidelity
    if fidelity is None:
        return False
    return next_to_resume(session.study.climbers(), fidelity) is not None


def _move(experiment: Experiment, layout: Layout, plan: Mapping[str, Any]) -> None:
    """Move the files of a generation to its folder, which appears by rename."""
    target = layout.generation(int(plan["generation"]))
    if target.exists():
        return
    part = target.with_name(f".{target.name}.part")
    (part / ".spearmint").mkdir(parents=True, exist_ok=True)
    copies = [experiment.path, layout.experiment]
    copies += wrappers(experiment.language, layout.root, experiment.name)
    for path in copies:
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(path, part / path.relative_to(layout.root))
    _move_database(layout.database, part / layout.database.name, str(plan["token"]))
    paths = (layout.jobs, layout.batches, layout.outputs, layout.finals, layout.trace, layout.best)
    for path in (*paths, layout.report, layout.regions):
        if path.exists() and not (part / path.name).exists():
            path.rename(part / path.name)
    part.rename(target)


def _move_database(path: Path, target: Path, token: str) -> None:
    """Copy an SQLite file with its log to ``target``, which appears by rename, and delete it.

    A file of another study, which a user began after a kill, stays.
    """
    if not target.exists():
        part = target.with_name(f".{target.name}.part")
        part.unlink(missing_ok=True)
        with (
            contextlib.closing(sqlite3.connect(path, timeout=_DATABASE_S)) as source,
            contextlib.closing(sqlite3.connect(part)) as copy,
        ):
            source.backup(copy)
        part.rename(target)
    if path.exists() and _token(path) == token:
        for end in ("-wal", "-shm", ""):  # the log first: it must not be that of a later file
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


def _token(path: Path) -> str:
    """Return what names the first study in an SQLite file; empty if there is none."""
    query = "SELECT value_json FROM study_user_attributes WHERE key = ? ORDER BY study_id LIMIT 1"
    with contextlib.closing(sqlite3.connect(path, timeout=_DATABASE_S)) as connection:
        try:
            found = connection.execute(query, (TOKEN,)).fetchone()
        except sqlite3.OperationalError:
            return ""
    return "" if found is None else str(found[0])


def _queue(layout: Layout, plan: Mapping[str, Any]) -> None:
    """Ask for the points of each region in the next generation."""
    for n, (region, points) in enumerate(sorted(plan["points"].items())):
        request_id = f"{int(plan['generation']):020d}-again{n}"
        request = Request(
            action=Action.ADD, region=region, points=tuple(points), id=request_id, repeat=True
        )
        Inbox(layout).put(request)
