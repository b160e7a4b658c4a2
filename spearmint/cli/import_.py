"""``spearmint import``: add earlier results to a search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from spearmint.cli.options import storage_option
from spearmint.errors import InputError, NoSearch
from spearmint.layout import Layout

if TYPE_CHECKING:
    from spearmint.importing.rows import Checked, Point, Table
    from spearmint.model import Experiment, Params, Trial
    from spearmint.store.study import Study

_MOST_PROBLEMS = 50  # shown


@cloup.command("import")
@cloup.argument(
    "config",
    type=click.Path(path_type=Path),
    help="The search to add to: a config.pb, or the directory that contains it.",
)
@cloup.argument("source", help="The earlier results.")
@click.option(
    "--study",
    metavar="NAME",
    help="Read this study. Required if an Optuna storage has several. Default: the only one.",
)
@click.option(
    "--value-column",
    metavar="NAME",
    help="Read values from this column of a CSV file. Default: value.",
)
@click.option("--skip-bad", is_flag=True, help="Skip invalid rows and import the others.")
@click.option(
    "-n", "--dry-run", is_flag=True, help="Check SOURCE and print a summary, but store nothing."
)
@click.option(
    "--region",
    metavar="NAME",
    help="Import into this region. Required if the search has regions. Default: no region.",
)
@storage_option
def import_(
    config: Path,
    source: str,
    study: str | None,
    value_column: str | None,
    skip_bad: bool,
    dry_run: bool,
    region: str | None,
    storage: str | None,
) -> None:
    """Add results of earlier runs to a search.

    SOURCE is a CSV file with the columns of `spearmint export`, the directory of another search,
    the URL of an Optuna storage, or a directory with jobs/*.pb of the original Spearmint. Results
    that were imported before are not imported a second time.

    They become complete trials. If config.pb has rungs (the block fidelity), values at their steps
    are imported too, and trials that were paused or pruned become paused trials.

    \b
    Examples:
      spearmint import examples/branin/config.pb earlier.csv
      spearmint import --study=branin config.pb sqlite:////data/optuna.db
    """
    from spearmint.config.reader import load_experiment
    from spearmint.importing.rows import check
    from spearmint.importing.source import read_source
    from spearmint.store.session import in_region

    experiment = in_region(load_experiment(config), region)
    table = read_source(source, experiment, study=study, value_column=value_column)
    goals = experiment.objectives if experiment.has_front else ()
    checked = check(table, experiment.variables, experiment.constraints, goals, experiment.fidelity)
    if checked.problems and not skip_bad:
        raise InputError(
            f"{table.source}: {_count(checked.bad, 'row')} cannot be imported:\n{_listed(checked)}",
            "Nothing was imported. Fix these rows, or skip them: --skip-bad.",
        )
    if dry_run:
        new = _new(checked.points, _stored(experiment, storage))
    else:
        new = _import(experiment, storage, checked.points)
    name = experiment.study_name
    click.echo(_summary(table, checked, new, name=name, dry_run=dry_run))
    if checked.stopped:
        click.echo(_left_out(checked.stopped, experiment))


def _import(experiment: Experiment, storage: str | None, points: Sequence[Point]) -> list[Point]:
    """Store the points that are not yet stored, and return them."""
    from spearmint.store.owner import read_ownership
    from spearmint.store.session import run_sessions

    known = read_ownership(Layout(experiment.directory))
    driver = known.driver if known is not None else "local"
    with run_sessions(experiment, storage, driver=driver) as (session,):
        new = _new(points, session.study.trials())
        for point in new:
            _add(session.study, point)
    return new


def _add(study: Study, point: Point) -> None:
    if point.value is None:
        study.add_paused(point.params, point.rungs, source=point.source, seconds=point.seconds)
        return
    study.add_complete(
        point.params,
        point.value,
        source=point.source,
        seconds=point.seconds,
        constraints=point.constraints,
        rungs=point.rungs,
    )


def _stored(experiment: Experiment, storage: str | None) -> list[Trial]:
    """Return the trials of the search; none if it never ran."""
    from spearmint.store.session import read_sessions

    try:
        (session,) = read_sessions(experiment.path, storage, experiment.region or None)
        return session.study.trials()
    except NoSearch:
        return []


def _new(points: Sequence[Point], trials: Sequence[Trial]) -> list[Point]:
    """Return the points that are not among ``trials``, by parameters and value.

    A point that appears twice was evaluated twice, and each stored trial matches only one of them.
    Of a paused point the values at its rungs count: the stored trial can have been resumed.
    """
    stored = Counter(key for trial in trials for key in _keys(trial))
    new = []
    for point in points:
        key = _key(point.params, _rungs_key(point.rungs) if point.value is None else point.value)
        if stored[key]:
            stored[key] -= 1
        else:
            new.append(point)
    return new


def _keys(trial: Trial) -> Iterator[tuple[object, ...]]:
    """Yield what a point can have in common with a stored trial."""
    yield _key(trial.params, tuple(trial.objectives.values()) or trial.value)
    for passed in range(1, len(trial.rungs) + 1):
        yield _key(trial.params, _rungs_key(trial.rungs[:passed]))


def _rungs_key(rungs: Sequence[float]) -> tuple[object, ...]:
    return ("rungs", *(None if math.isnan(value) else value for value in rungs))


def _key(params: Params, value: object) -> tuple[object, ...]:
    return (value, *sorted(params.items()))


def _summary(
    table: Table, checked: Checked, new: Sequence[Point], *, name: str, dry_run: bool
) -> str:
    """Return how many rows were imported and skipped, in lines."""
    verb = "Would import" if dry_run else "Imported"
    paused = sum(point.value is None for point in new)
    those = f", {paused} of them paused" if paused else ""
    lines = [f"{verb} {_count(len(new), 'trial')} from {table.source} into {name!r}{those}"]
    if paused:
        lines.append(
            "Checkpoints are not imported: if a paused trial is resumed, it trains from the start."
        )
    if there := len(checked.points) - len(new):
        lines.append(f"Already there: {_count(there, 'trial')}")
    if checked.valueless:
        lines.append(f"Skipped {_count(checked.valueless, 'row')} without a finite value")
    if checked.bad:
        lines.append(f"Skipped {_count(checked.bad, 'bad row')}:\n{_listed(checked)}")
    if table.unused:
        lines.append(f"Not used: {', '.join(table.unused)}")
    return "\n".join(lines)


def _left_out(stopped: int, experiment: Experiment) -> str:
    """Return why paused and pruned trials were skipped."""
    what = f"Skipped {_count(stopped, 'paused or pruned trial')}"
    if experiment.fidelity is None:
        return f"{what}: {experiment.path} has no block fidelity"
    return f"{what} without a value at one of the {experiment.fidelity.describe()}"


def _listed(checked: Checked) -> str:
    shown = [f"  {problem}" for problem in checked.problems[:_MOST_PROBLEMS]]
    more = len(checked.problems) - len(shown)
    return "\n".join([*shown, f"  and {more} more"] if more else shown)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
