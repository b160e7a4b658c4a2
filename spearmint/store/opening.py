"""Open storages by URL; open, list and delete their studies."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping

import optuna
from optuna.pruners import NopPruner
from optuna.storages import BaseStorage, get_storage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from sqlalchemy import create_engine, inspect
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError

from spearmint.config.variables import describe
from spearmint.errors import InputError, StudyMismatch, next_command
from spearmint.model import Experiment
from spearmint.outputs import OBJECTIVE_LINE, output_lines
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.sql.closing import close_at_exit
from spearmint.store.sql.fast_reads import BulkReadStorage
from spearmint.store.sql.indexes import create_indexes
from spearmint.store.sql.sqlite import TrialConnection, file_of
from spearmint.store.sql.trial_storage import TrialStorage
from spearmint.store.study import OWNER, TOKEN, Study
from starmint import install_command

_SQLITE = {"timeout": 60, "factory": TrialConnection}
_VARIABLES = "spearmint:variables"
FIDELITY_LINE = "(fidelity)"
"""Line of a stored declaration: the rungs, see :meth:`spearmint.fidelity.Fidelity.describe`."""


def has_tables(url: str) -> bool:
    """Return whether Optuna has created all tables of an SQLite file; True for other storages.

    Opening the file earlier would create them, in conflict with a search that does the same.
    """
    if not url.startswith("sqlite"):
        return True
    engine = create_engine(url, connect_args=_SQLITE)
    try:
        with engine.connect() as connection:
            names = set(inspect(connection).get_table_names())
            if not {"version_info", "alembic_version"} <= names:
                return False
            last = connection.execute(sql("SELECT version_num FROM alembic_version"))
            return last.first() is not None
    finally:
        engine.dispose()


def open_storage(url: str) -> BaseStorage:
    """Return the storage at ``url``. Raises InputError if it cannot be used."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        if url.startswith("redis"):
            return get_storage(url)  # raises: Optuna does not support it
        arguments = {"connect_args": _SQLITE} if url.startswith("sqlite") else {}
        file = file_of(url)
        is_new = file is not None and not file.exists()  # no earlier Optuna wrote its tables
        backend = BulkReadStorage(url, engine_kwargs=arguments, skip_compatibility_check=is_new)
        close_at_exit(backend)
        return TrialStorage(backend)
    except ImportError as error:
        raise InputError(
            f"missing database driver: {error.__cause__ or error}",
            f"Install it. For postgresql://: {install_command('psycopg[binary]')}; "
            f"for mysql+pymysql://: {install_command('pymysql')}",
        ) from None
    except (ValueError, ArgumentError) as error:
        raise InputError(
            f"cannot use the storage: {error}",
            "Write a URL such as sqlite:////path/to/file.db or postgresql://HOST/DATABASE.",
        ) from None


def open_study(experiment: Experiment, url: str) -> Study:
    """Open the study of ``experiment`` at ``url`` as :func:`open_studies` does."""
    return open_studies([experiment], url)[0]


def open_studies(experiments: Iterable[Experiment], url: str) -> list[Study]:
    """Open the study of each of ``experiments`` at ``url``, or create it.

    Raises:
        StudyMismatch: A study exists with other variables or another direction.
        StorageError: The database cannot be used.
    """
    with wraps_storage_errors():
        storage = open_storage(url)
        if isinstance(storage, TrialStorage):
            create_indexes(storage._backend)
        return [
            _checked(experiment, url, storage, _created(experiment, storage))
            for experiment in experiments
        ]


def read_studies(experiments: Iterable[Experiment], url: str) -> list[Study]:
    """Open existing studies as :func:`open_studies` does, without writing."""
    with wraps_storage_errors():
        storage = open_storage(url)
        return [
            _checked(
                experiment,
                url,
                storage,
                optuna.load_study(study_name=experiment.study_name, storage=storage),
            )
            for experiment in experiments
        ]


def _created(experiment: Experiment, storage: BaseStorage) -> optuna.Study:
    """Return the study of ``experiment``; create and mark it if necessary."""
    study = optuna.create_study(
        storage=storage,
        study_name=experiment.study_name,
        directions=directions_of(experiment),
        pruner=NopPruner(),
        load_if_exists=True,
    )
    known = study.user_attrs
    if TOKEN not in known:
        study.set_user_attr(TOKEN, uuid.uuid4().hex)
    if _VARIABLES not in known:
        study.set_user_attr(_VARIABLES, _declaration(experiment))
    return study


def directions_of(experiment: Experiment) -> list[StudyDirection]:
    """Return the direction of each objective."""
    larger = [objective.maximize for objective in experiment.objectives] or [experiment.maximize]
    return [StudyDirection.MAXIMIZE if each else StudyDirection.MINIMIZE for each in larger]


def _checked(experiment: Experiment, url: str, storage: BaseStorage, study: optuna.Study) -> Study:
    declared = _declaration(experiment)
    known = study.user_attrs.get(_VARIABLES, declared)
    if known != declared or objective_names(known) != objective_names(declared):
        raise _mismatch(experiment, known, declared)
    return Study(experiment, url, storage, study)


def study_names(url: str) -> list[str]:
    """Return the names of all studies in the storage at ``url``."""
    with wraps_storage_errors():
        return optuna.get_all_study_names(open_storage(url)) if has_tables(url) else []


def stored_trials(name: str, url: str) -> tuple[list[StudyDirection], list[FrozenTrial]]:
    """Return the directions and all trials of the study ``name``, of any program."""
    with wraps_storage_errors():
        study = optuna.load_study(study_name=name, storage=open_storage(url))
        return study.directions, study.get_trials(deepcopy=False)


def study_owner(name: str, url: str) -> dict[str, str] | None:
    """Return the directory and host of the study ``name``; None if they were never stored."""
    with wraps_storage_errors():
        study = optuna.load_study(study_name=name, storage=open_storage(url))
        owner: dict[str, str] | None = study.user_attrs.get(OWNER)
        return owner


def stored_declaration(name: str, url: str) -> dict[str, str]:
    """Return a line for each variable of the study ``name``, and its direction.

    Empty if there is no such study, or if another program created it.
    """
    with wraps_storage_errors():
        file = file_of(url)
        if (file is not None and not file.exists()) or name not in study_names(url):
            return {}
        study = optuna.load_study(study_name=name, storage=open_storage(url))
        declared: dict[str, str] = study.user_attrs.get(_VARIABLES, {})
        return declared


def objective_names(declaration: Mapping[str, str]) -> list[str]:
    """Return the named objectives of a stored declaration, in the order of their values."""
    found = [name for name in declaration if name.startswith(OBJECTIVE_LINE)]
    return [name.removeprefix(OBJECTIVE_LINE) for name in found]


def delete_study(name: str, url: str) -> None:
    """Delete the study ``name`` and its trials."""
    with wraps_storage_errors():
        optuna.delete_study(study_name=name, storage=open_storage(url))


def _declaration(experiment: Experiment) -> dict[str, str]:
    """Return the parts of a config.pb that must not change during a search."""
    lines = {variable.name: describe(variable) for variable in experiment.variables}
    lines |= output_lines(experiment.objectives, experiment.constraints)
    if experiment.fidelity is not None:
        lines[FIDELITY_LINE] = experiment.fidelity.describe()
    return {**lines, "(direction)": "maximize" if experiment.maximize else "minimize"}


def _mismatch(
    experiment: Experiment, known: dict[str, str], declared: dict[str, str]
) -> StudyMismatch:
    names = sorted(known.keys() | declared.keys())
    rows = [
        f"  {name}: stored {known.get(name, 'nothing')}; config.pb {declared.get(name, 'nothing')}"
        for name in names
        if known.get(name) != declared.get(name)
    ]
    if not rows:  # values are stored in the order of the objectives
        stored, now = (", ".join(objective_names(each)) for each in (known, declared))
        rows = [f"  order of the objectives: stored {stored}; config.pb {now}"]
    return StudyMismatch(
        f"{experiment.path} differs from the search stored as {experiment.study_name!r}:\n"
        + "\n".join(rows),
        "Undo the change. Or copy config.pb and the code to a new directory NEW and import the "
        f"trials: {next_command('import', 'NEW', experiment.directory)}\n"
        f"Or delete the search: {next_command('cleanup', experiment.directory)}",
    )
