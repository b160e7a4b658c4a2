"""Compare the trials of one region with their jobs and folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from spearmint.checking.problem import Problem
from spearmint.controller.direct import Collected
from spearmint.controller.outcomes import Outcomes
from spearmint.drivers import Driver
from spearmint.layout import BATCH, TrialFolder, read_json, write_text
from spearmint.model import Trial, TrialState
from spearmint.store.distributions import to_flat
from spearmint.store.records import best_text
from spearmint.store.session import Session
from spearmint.trial.results import read_result

_LATE = "result.late.json"
_ORPHAN = ".orphan"


def trial_problems(session: Session, driver: Driver, *, runs: bool) -> Iterator[Problem]:
    """Yield the problems of the trials of ``session``; those of jobs only if no controller runs."""
    folders = _folders(session)  # before the trials: a trial is stored before its folder is made
    states = session.study.states()
    for number, folder in sorted(folders.items()):
        if number not in states and session.study.is_free(number):
            yield _orphan(folder)
    suspects = [
        number
        for number, state in states.items()
        if number in folders and _is_suspect(driver, folders[number], state, runs=runs)
    ]
    for trial in session.study.some(suspects):
        yield from _of_trial(session, driver, trial, runs=runs)
    if not runs:
        yield from _job_problems(session, driver, states)
        yield from record_problems(session)


def _job_problems(
    session: Session, driver: Driver, states: Mapping[int, TrialState]
) -> Iterator[Problem]:
    """Yield a problem for each job of several trials that all have ended while it runs."""
    for path in sorted(session.layout.batches.glob("*/")):
        folder = TrialFolder(path)
        trials = (read_json(folder.spec) or {}).get(BATCH, ())
        has_ended = all(states.get(number) is not TrialState.RUNNING for number in trials)
        if has_ended and driver.has_job(folder):
            yield Problem(
                f"trials {', '.join(map(str, trials))} have ended, and their job still runs",
                "The job is terminated.",
                _ending(driver, folder),
            )


def _folders(session: Session) -> Mapping[int, TrialFolder]:
    return {
        int(path.name): TrialFolder(path)
        for path in session.layout.jobs.glob("*/")
        if path.name.isdecimal()
    }


def _orphan(folder: TrialFolder) -> Problem:
    target = folder.path.with_name(f"{folder.path.name}{_ORPHAN}")

    def move() -> None:
        free = next(path for path in _names(target) if not path.exists())
        folder.path.rename(free)

    return Problem(
        f"{folder.path} is the folder of no trial in the database",
        f"It is renamed to {target.name}: a later trial must not find its files.",
        move,
    )


def _names(path: Path) -> Iterator[Path]:
    yield path
    n = 1
    while True:
        n += 1
        yield path.with_name(f"{path.name}{n}")


def _is_suspect(driver: Driver, folder: TrialFolder, state: TrialState, *, runs: bool) -> bool:
    """Return whether a trial can have a problem; most have ended, and so have their jobs."""
    if state is TrialState.BROKEN:
        return True
    return not runs and (state is TrialState.RUNNING or driver.has_job(folder))


def _of_trial(session: Session, driver: Driver, trial: Trial, *, runs: bool) -> Iterator[Problem]:
    folder = session.layout.folder(trial.id)
    fidelity = session.experiment.fidelity
    is_whole = fidelity is None or fidelity.is_last(len(trial.rungs))
    if trial.state is TrialState.BROKEN and is_whole:
        yield from _late(session, trial, folder)
    if runs:
        return
    if trial.state is not TrialState.RUNNING:
        if driver.has_job(folder):
            yield Problem(
                f"{trial.label} is {trial.state}, and its job still runs",
                "The job is terminated.",
                _ending(driver, folder),
            )
        return
    outcomes = Outcomes(
        session.study, session.layout, driver, Collected(), on_end=lambda ended: None
    )
    has_result = read_result(folder, session.study.key(trial)) is not None
    if has_result and not outcomes.failure_of_all(trial, folder) and not driver.has_job(folder):
        yield Problem(
            f"{trial.label} has a result that is not in the database",
            "The result is stored.",
            lambda: outcomes.store_result(trial, folder),
        )


def _ending(driver: Driver, folder: TrialFolder) -> Callable[[], object]:
    def end() -> None:
        job = driver.adopt(folder)
        if job is not None:
            driver.cancel([job])

    return end


def _late(session: Session, trial: Trial, folder: TrialFolder) -> Iterator[Problem]:
    """Yield a problem if a failed trial has a value: its job wrote it after it seemed lost."""
    study = session.study
    result = read_result(folder, study.key(trial))
    if result is None or result.value is None:
        return
    value, goals = result.value, dict(result.objectives)

    def is_same(other: Trial) -> bool:
        return (other.objectives, other.value) == (goals, None if goals else value)

    def store() -> None:
        point = to_flat(study.experiment.variables, trial.params)
        if not any(map(is_same, study.at([point]))):
            study.add_complete(
                trial.params,
                [*goals.values()] or value,
                source=trial.label,
                seconds=result.seconds,
                constraints=result.constraints,
            )
        study.disregard([trial])
        folder.result.rename(folder.path / _LATE)

    yield Problem(
        f"{trial.label} is broken ({trial.reason}), and its job wrote the value {value:g} later",
        "The value is stored as a new trial.",
        store,
    )


def record_problems(session: Session) -> Iterator[Problem]:
    """Yield a problem if best_job_and_result.txt has another trial than the database."""
    best, path = session.study.best(), session.layout.best
    if not best or session.experiment.has_front:
        return
    text = best_text(session.experiment, best[0])
    if not session.layout.trace.exists():
        return  # no controller ran: the trials were imported
    if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
        yield Problem(
            f"{path} does not have the best trial, {best[0].label}",
            "It is written again.",
            lambda: write_text(path, text),
        )
