"""Read the results of a source that the command line names, whatever its kind."""

from __future__ import annotations

from pathlib import Path

from spearmint.errors import InputError
from spearmint.importing.csv_source import DEFAULT_VALUE_COLUMN, read_csv
from spearmint.importing.original_source import original_files, read_original
from spearmint.importing.rows import Table, only_region
from spearmint.importing.study_source import is_search, read_folder, read_storage
from spearmint.model import Experiment

_SQLITE_START = b"SQLite format 3\0"


def read_source(
    source: str, experiment: Experiment, *, study: str | None, value_column: str | None
) -> Table:
    """Return the results in ``source``.

    Args:
        source: URL of a storage, CSV file, directory of another search, or directory with job files
            of the original Spearmint. If it is the directory of ``experiment``, only job files of
            the original are read.
        study: Name of a study, for a source that is a storage.
        value_column: Name of the value column, for a source that is a CSV file.

    Raises:
        InputError: The source is of another kind or cannot be read, or an argument does not fit it.
    """
    path = Path(source)
    is_csv = "://" not in source and path.is_file()
    if value_column is not None and not is_csv:
        raise InputError("--value-column is only for CSV files, and the source is not a CSV file")
    if "://" in source:
        return read_storage(source, experiment, name=study)
    if not path.exists():
        raise InputError(
            f"no such file or directory: {source}",
            "Name a CSV file, the directory of another search, or the URL of a storage.",
        )
    if not (is_csv or path.is_dir()):  # such as <(zcat results.csv.gz)
        raise InputError(
            f"{source} is neither a file nor a directory", "Write the rows to a CSV file first."
        )
    if is_csv:
        _refuse_database(path)
        if study is not None:
            raise InputError(f"--study is only for storages, and {source} is a file")
        name = value_column or DEFAULT_VALUE_COLUMN
        limits = experiment.constraints
        goals = experiment.objectives if experiment.has_front else ()
        fidelity = experiment.fidelity
        table = read_csv(
            path,
            experiment.variables,
            value_column=name,
            constraints=limits,
            objectives=goals,
            rungs=() if fidelity is None else fidelity.rungs,
        )
        return only_region(table, experiment.region) if experiment.region else table
    if study is not None or (is_search(path) and path.resolve() != experiment.directory):
        return read_folder(path, experiment, name=study)
    files = original_files(path)
    if not files:
        raise InputError(
            f"no results in {source}",
            "Name a directory with another search, or with jobs/*.pb of the original Spearmint.",
        )
    return read_original(files)


def _refuse_database(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_START))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if start == _SQLITE_START:
        raise InputError(
            f"{path} is a database, not a CSV file", f"Use its URL: sqlite:///{path.absolute()}"
        )
