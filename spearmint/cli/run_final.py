"""Run the final trainings of ``spearmint final``. Imports Optuna."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from spearmint.cli.overrides import override_resources, require_launcher, require_one_host
from spearmint.cli.setting_options import given_options
from spearmint.config.reader import load_experiment
from spearmint.config.regions import pick_region
from spearmint.config.wrapper import require_syntax, require_wrapper
from spearmint.controller.orphans import choose_driver
from spearmint.drivers import Driver, DriverSettings, make_driver
from spearmint.errors import Interrupted
from spearmint.final import FinalTraining, choose
from spearmint.layout import Layout
from spearmint.model import Experiment
from spearmint.resources import Resources
from spearmint.store.session import Session, known_regions, read_sessions, run_sessions

_POLL_S = 3.0


class Printed:
    """Prints messages, to standard error if the output is JSON."""

    def __init__(self, *, to_errors: bool) -> None:
        self._to_errors = to_errors

    def note(self, text: str) -> None:
        """Print it."""
        click.echo(text, err=self._to_errors)


def run_final(
    config: Path,
    storage: str | None,
    region: str | None,
    *,
    driver: str | None,
    resources: dict[str, Any],
    quiet: bool,
    retrain: bool,
    **choice: int,
) -> list[dict[str, Any]]:
    """Train the final models of all regions, or of one, at the same time; return a row for each.

    Raises:
        SpearmintError: There is no search, or a job cannot be submitted.
    """
    read_sessions(config, storage, region)  # raises if there is no search
    experiment = known_regions(load_experiment(config))
    needed = override_resources(experiment.resources, given_options(Resources, resources))
    experiment = dataclasses.replace(experiment, resources=needed)
    require_launcher(experiment)
    require_wrapper(experiment)
    require_syntax(experiment)
    used = _driver(experiment, driver)
    if not used.detaches:
        require_one_host(experiment, used.name)
    name = pick_region(experiment.regions, region) if region is not None else None
    with run_sessions(experiment, storage, driver=used.name) as sessions:
        chosen = [s for s in sessions if name is None or s.experiment.region == name]
        trainings = _begin(chosen, used, Printed(to_errors=quiet), retrain=retrain, **choice)
        _follow(trainings, used)
        return [_row(training) for training in trainings]


def _driver(experiment: Experiment, name: str | None) -> Driver:
    layout = Layout(experiment.directory)
    settings = DriverSettings(directory=layout.root, resources=experiment.resources)
    return make_driver(choose_driver(layout, name), settings)


def _begin(
    sessions: Sequence[Session], driver: Driver, printed: Printed, *, retrain: bool, **choice: int
) -> list[FinalTraining]:
    trainings = []
    choices = [choose(session.study, session.layout, **choice) for session in sessions]
    for session, chosen in zip(sessions, choices, strict=True):
        training = FinalTraining(
            experiment=session.experiment,
            layout=session.layout,
            study=session.study,
            driver=driver,
            observer=printed,
        )
        known = None if retrain else training.same(chosen)
        if known is not None:
            training.kept = known
            printed.note(
                f"{known.path.parent.name}: version {known.number} was trained from trial "
                f"{chosen.trial.id}. To train it again, add --retrain."
            )
        else:
            training.begin(chosen)
        trainings.append(training)
    return trainings


def _follow(trainings: Sequence[FinalTraining], driver: Driver) -> None:
    """Wait until all have ended. Ctrl-C terminates local jobs, and leaves those of a queue."""
    try:
        while jobs := [job for training in trainings for job in training.jobs]:
            driver.wait(jobs, _POLL_S)
            states = driver.poll(jobs)
            for training in trainings:
                training.collect(states)
            for text in driver.notices():
                trainings[0].observer.note(text)
    except KeyboardInterrupt:
        if driver.detaches:
            raise Interrupted("stopped; the jobs continue", "Rerun to follow them.") from None
        for training in trainings:
            training.end()
        raise


def _row(training: FinalTraining) -> dict[str, Any]:
    kept = training.kept
    return {
        "region": training.experiment.region,
        "version": training.version or (kept.number if kept else 0),
        "folder": str(kept.path) if kept else "",
        "metrics": kept.metrics() if kept else {},
        "failure": training.failure,
    }
