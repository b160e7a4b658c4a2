"""Results of another study: of an experiment's directory, or of any storage of Optuna."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from spearmint.errors import InputError, did_you_mean
from spearmint.importing.rows import Row, Table
from spearmint.layout import Layout
from spearmint.model import Experiment
from spearmint.store.opening import stored_trials, study_names
from spearmint.store.owner import read_ownership, storage_url
from spearmint.store.sqlite import file_of

_SECONDS = "seconds"  # as our studies have it


def is_search(folder: Path) -> bool:
    """Tell whether searches of ours were run in ``folder``."""
    layout = Layout(folder)
    return read_ownership(layout) is not None or layout.database.exists()


def read_folder(folder: Path, experiment: Experiment, *, name: str | None) -> Table:
    """Return the trials of the search in ``folder``, or those of its study ``name``.

    Where the other search has the region of ``experiment``, that one is read.
    """
    layout = Layout(folder.resolve())
    known = read_ownership(layout)
    if name is None and known is not None:
        region = experiment.region if experiment.region in known.regions else ""
        name = f"{known.name}@{region}" if region else known.name
    return read_storage(storage_url(layout, None), experiment, name=name)


def read_storage(url: str, experiment: Experiment, *, name: str | None) -> Table:
    """Return the trials of the study ``name``; None: of the only one in the storage.

    Raises:
        InputError: There is no such study, or it optimises another way than ``experiment``.
    """
    file = file_of(url)
    if file is not None and not file.exists():
        raise InputError(f"no such file: {file}")
    try:
        names = study_names(url)
    except RuntimeError as error:  # how Optuna refuses a storage of another version
        raise InputError(f"the storage cannot be read: {error}") from None
    if name is None and len(names) == 1:
        name = names[0]
    if name is None or name not in names:
        what = f"no study {name!r} in the storage" if name else "the storage has several studies"
        hint = did_you_mean(name, names) if name else "Choose one with --study."
        there = f"There are: {', '.join(names)}." if names else "It is empty."
        raise InputError(what if names else "no study in the storage", f"{there} {hint}".rstrip())
    directions, trials = stored_trials(name, url)
    expected = StudyDirection.MAXIMIZE if experiment.maximize else StudyDirection.MINIMIZE
    if directions != [expected]:
        found = " and ".join(direction.name.lower() for direction in directions)
        raise InputError(
            f"study {name!r} is there to {found}, {experiment.path} to {expected.name.lower()}",
            "The values cannot be compared; export them to CSV and convert them there.",
        )
    return _table(name, trials, experiment)


def _table(name: str, trials: Sequence[FrozenTrial], experiment: Experiment) -> Table:
    keys = {key for variable in experiment.variables for key in variable.elements()}
    found = dict.fromkeys(key for trial in trials for key in trial.params)
    rows = [
        Row(
            place=f"trial {trial.number + 1}",
            cells=trial.params,
            value=trial.value if trial.state is TrialState.COMPLETE else None,
            seconds=trial.user_attrs.get(_SECONDS),
        )
        for trial in trials
    ]
    return Table(
        source=f"study {name}", rows=rows, unused=[key for key in found if key not in keys]
    )
