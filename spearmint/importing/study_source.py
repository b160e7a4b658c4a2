"""Results of another study, in an experiment's directory or in any storage of Optuna."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optuna.trial import FrozenTrial, TrialState

from spearmint.choosers.rungs import is_paused, rungs_of, values_at_rungs
from spearmint.errors import InputError, did_you_mean
from spearmint.fidelity import rungs_in
from spearmint.importing.rows import Row, Table
from spearmint.layout import Layout
from spearmint.model import Experiment
from spearmint.store.opening import (
    FIDELITY_LINE,
    directions_of,
    objective_names,
    stored_declaration,
    stored_trials,
    study_names,
)
from spearmint.store.owner import read_ownership, storage_url
from spearmint.store.sql.sqlite import file_of

_SECONDS, _CONSTRAINTS = "seconds", "constraints"  # user attributes that spearmint stores


def is_search(folder: Path) -> bool:
    """Return whether a spearmint search was run in ``folder``."""
    layout = Layout(folder)
    return read_ownership(layout) is not None or layout.database.exists()


def read_folder(folder: Path, experiment: Experiment, *, name: str | None) -> Table:
    """Return the trials of the search in ``folder``, or of its study ``name``.

    If the other search has the same region as ``experiment``, only that region is read.
    """
    layout = Layout(folder.resolve())
    known = read_ownership(layout)
    if name is None and known is not None:
        region = experiment.region if experiment.region in known.regions else ""
        name = f"{known.name}@{region}" if region else known.name
    return read_storage(storage_url(layout, None), experiment, name=name)


def read_storage(url: str, experiment: Experiment, *, name: str | None) -> Table:
    """Return the trials of the study ``name``; None: the only study in the storage.

    Raises:
        InputError: The study does not exist, or its direction differs from ``experiment``.
    """
    file = file_of(url)
    if file is not None and not file.exists():
        raise InputError(f"no such file: {file}")
    try:
        names = study_names(url)
    except RuntimeError as error:  # Optuna raises it for a storage of another version
        raise InputError(f"cannot read the storage: {error}") from None
    if name is None and len(names) == 1:
        name = names[0]
    if name is None or name not in names:
        what = f"no study {name!r} in the storage" if name else "the storage has several studies"
        hint = did_you_mean(name, names) if name else "Choose one with --study."
        if not names:
            raise InputError("the storage contains no study")
        raise InputError(what, f"The studies are: {', '.join(names)}. {hint}".rstrip())
    directions, trials = stored_trials(name, url)
    expected = directions_of(experiment)
    goals = _objectives(experiment, objective_names(stored_declaration(name, url)))
    if goals and len(directions) == len(goals):
        by_name = dict(zip((goal.name for goal in experiment.objectives), expected, strict=True))
        expected = [by_name[goal] for goal in goals]
    if directions != expected:
        found, wanted = (
            " and ".join(d.name.lower() for d in each) for each in (directions, expected)
        )
        raise InputError(
            f"the direction of study {name!r} is {found}, "
            f"but that of {experiment.path} is {wanted}",
            "Their values cannot be compared: export the study to CSV, and convert them there.",
        )
    rungs = rungs_in(stored_declaration(name, url).get(FIDELITY_LINE, ""))
    return _table(name, trials, experiment, goals, rungs)


def _objectives(experiment: Experiment, stored: Sequence[str]) -> list[str]:
    """Return the names of several objectives in the order of the values of a study.

    Args:
        experiment: The search that gets the trials.
        stored: The objectives of the study; empty if another program created it.

    Raises:
        InputError: The study has other objectives.
    """
    wanted = [goal.name for goal in experiment.objectives] if experiment.has_front else []
    if not wanted or len(stored) != len(wanted):
        return wanted
    if set(stored) != set(wanted):
        raise InputError(
            f"the objectives of the study are {', '.join(stored)}, "
            f"but those of {experiment.path} are {', '.join(wanted)}",
            "Export the study to CSV, and rename the columns there.",
        )
    return list(stored)


def _table(
    name: str,
    trials: Sequence[FrozenTrial],
    experiment: Experiment,
    goals: Sequence[str],
    rungs: Sequence[int],
) -> Table:
    keys = {key for variable in experiment.variables for key in variable.elements()}
    found = dict.fromkeys(key for trial in trials for key in trial.params)
    rows = [
        Row(
            place=f"trial {trial.number + 1}",
            cells={
                **dict(zip(goals, trial.values or (), strict=False)),
                **trial.user_attrs.get(_CONSTRAINTS, {}),
                **trial.params,
            },
            value=trial.values[0] if trial.state is TrialState.COMPLETE else None,
            seconds=trial.user_attrs.get(_SECONDS),
            curve=_curve(trial, rungs),
            stopped=is_paused(trial) or trial.state is TrialState.PRUNED,
        )
        for trial in trials
    ]
    return Table(
        source=f"study {name}", rows=rows, unused=[key for key in found if key not in keys]
    )


def _curve(trial: FrozenTrial, rungs: Sequence[int]) -> dict[int, float]:
    """Return the values of a trial by step: its reports, and what it returned at rungs."""
    stored = rungs_of(trial)
    known = [] if stored is None else values_at_rungs(stored)
    return {**trial.intermediate_values, **dict(zip(rungs, known, strict=False))}
