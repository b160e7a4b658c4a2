"""Load rows from a file of a known type, or the built-in data set ``digits``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from pycuda_nn.data.arrays import Label, check_features
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.data.npz import PythonObjects, map_npy, read_npz
from pycuda_nn.data.split import Splits, check_fractions, split
from pycuda_nn.data.table import SUFFIXES as TABLES
from pycuda_nn.data.table import Encoding, TableOptions, is_table
from pycuda_nn.data.tabular import load_table, load_table_splits, table_features
from pycuda_nn.errors import DataError, MissingExtra, UnreadableFile, did_you_mean

Array = npt.NDArray[Any]
Source = str | Path

SUFFIXES = (".npz", ".npy", *TABLES)
_VALID = ("valid", "val", "validation")


def load_data(
    source: Source,
    labels: Source | None = None,
    *,
    target: str | None = None,
    task: str = "auto",
    classes: tuple[Label, ...] | None = None,
    columns: Sequence[str] | None = None,
    table: TableOptions | None = None,
    encoding: Encoding | None = None,
) -> Dataset:
    """Read the features and labels of a source.

    Example:
        >>> import pycuda_nn as nn
        >>> nn.load_data("digits").x.shape
        (1797, 64)

    Args:
        source: ``digits``, or a ``.npz`` (arrays x and y), ``.npy``, ``.csv``, ``.tsv`` or
            ``.parquet`` file; text can be compressed (``.csv.gz``, ``.bz2``, ``.xz``).
        labels: A ``.npy`` file with the labels, for a ``.npy`` source; both are memory-mapped.
        target: Name or number of the target column of a table; default: the last.
        task: ``classify``, ``regress`` or ``auto`` (regress for real targets).
        classes: Labels of a model. Any other label is an error; a single class is allowed.
        columns: Feature columns of a model, selected by name if the table has names.
        table: How a table is read and encoded. The encoding is learned from all rows;
            :func:`load_splits` learns it from the training rows only.
        encoding: Encoding of a model (``model.encoding``), to be used instead.

    Raises:
        DataError: The file is missing or not readable, or its rows cannot be trained on.
        MissingExtra: The source needs a package that is not installed.
    """
    if str(source) == "digits":
        return _digits(task)
    path = existing_file(source)
    if is_table(path):
        return load_table(
            path, table or TableOptions(), target=target, task=task, classes=classes,
            columns=columns, encoding=encoding,
        )  # fmt: skip
    if path.suffix == ".npy":
        if labels is None:
            raise DataError(f"{path}: no labels", "Name the file of the labels: --labels y.npy")
        x, y = _read_npy(path), _read_npy(existing_file(labels))
        return Dataset.from_arrays(x, y, task=task, name=str(path), classes=classes)
    arrays = _read_npz(path)
    if "x" not in arrays or "y" not in arrays:
        split_already = "x_train" in arrays
        raise DataError(
            f"{path}: arrays x and y are missing; the file has {', '.join(arrays) or 'no arrays'}",
            "The file is already split: use load_splits."
            if split_already
            else "Save the arrays with np.savez(file, x=..., y=...).",
        )
    x, y = arrays["x"], arrays["y"]
    return Dataset.from_arrays(x, y, task=task, name=str(path), classes=classes)


def load_splits(
    source: Source,
    labels: Source | None = None,
    *,
    fractions: Sequence[float] = (0.6, 0.2, 0.2),
    seed: int = 0,
    target: str | None = None,
    task: str = "auto",
    table: TableOptions | None = None,
) -> Splits:
    """Read a source and split it; parts that a ``.npz`` file already has are not changed.

    A ``.npz`` file with x_train and y_train can also have x_valid (or x_val) and x_test, with
    y_valid (or y_val) and y_test. Missing parts are split from the training rows in the proportion
    of ``fractions``.

    Example:
        >>> import pycuda_nn as nn
        >>> parts = nn.load_splits("digits", fractions=(0.8, 0.1, 0.1))
        >>> len(parts.train), len(parts.valid), len(parts.test)
        (1438, 179, 180)
    """
    check_fractions(fractions)
    path = Path(source)
    if is_table(path):
        options = table or TableOptions()
        return load_table_splits(
            existing_file(path), options, fractions=fractions, seed=seed, target=target, task=task
        )
    arrays = _read_npz(existing_file(path)) if path.suffix == ".npz" else {}
    if "x_train" not in arrays:
        data = load_data(source, labels, target=target, task=task)
        return Splits(**dict(zip(_PARTS, split(data, fractions, seed), strict=True)))
    train = _named_part(arrays, ("train",), path, task, None)
    if train is None:  # only for the type: x_train is there
        raise DataError(f"{path}: no array x_train")
    valid = _named_part(arrays, _VALID, path, task, train)
    test = _named_part(arrays, ("test",), path, task, train)
    shares = [fractions[0], 0.0 if valid else fractions[1], 0.0 if test else fractions[2]]
    rest = split(train, [share / sum(shares) for share in shares], seed)
    return Splits(train=rest[0], valid=valid or rest[1], test=test or rest[2])


def load_features(
    source: Source,
    *,
    width: int,
    columns: Sequence[str] | None = None,
    encoding: Encoding | None = None,
) -> tuple[Array, str]:
    """Read rows to predict, without labels; return (float32 rows, name).

    From a table with names, the ``columns`` of the model are selected, in the model's order. A
    table without names, or an array, must have ``width`` columns.
    """
    if str(source) == "digits":
        return _digits().x, "digits"
    path = existing_file(source)
    names: Sequence[str] | None = None
    if is_table(path):
        x, names = table_features(path, columns=columns, encoding=encoding)
    elif path.suffix == ".npy":
        x = _read_npy(path)
    else:
        arrays = _read_npz(path)
        if "x" not in arrays:
            raise DataError(
                f"{path}: array x is missing; the file has {', '.join(arrays) or 'no arrays'}"
            )
        x = arrays["x"]
    features = check_features(x, name=str(path), columns=names)
    if features.shape[1] != width:
        raise DataError(
            f"{path}: {features.shape[1]} columns, but the model needs {width}",
            "Use the columns that the model was trained on.",
        )
    return features, str(path)


_PARTS = ("train", "valid", "test")


def existing_file(source: Source) -> Path:
    """Return the path of a file of a known type; raise UnreadableFile if there is none."""
    path = Path(source)
    if path.suffix not in SUFFIXES and not is_table(path):
        if not path.exists() and not path.suffix:
            hint = did_you_mean(str(source), ["digits"])
            raise UnreadableFile(f"unknown data '{source}'", f"{hint} Or name a file.")
        raise UnreadableFile(
            f"{path}: unsupported file type '{path.suffix}'",
            f"Use a file of type {', '.join(SUFFIXES)}, or the name digits.",
        )
    if path.is_file():
        return path
    if path.is_dir():
        raise UnreadableFile(f"{path}: a directory, not a file", "Name a file in it.")
    if path.exists():
        raise UnreadableFile(f"{path}: not a regular file", "Copy its content to a file.")
    raise UnreadableFile(f"{path}: no such file", "Check the path.")


def _digits(task: str = "auto") -> Dataset:
    try:
        datasets: Any = importlib.import_module("sklearn.datasets")
    except ImportError as error:
        raise MissingExtra("scikit-learn", "data", "The data set digits") from error
    bunch = datasets.load_digits()
    columns = [str(name) for name in bunch.feature_names]
    return Dataset.from_arrays(bunch.data, bunch.target, task=task, columns=columns, name="digits")


def _read_npy(path: Path) -> Array:
    try:
        return map_npy(path)
    except (ValueError, OSError) as error:
        raise _unreadable(path, error) from error


def _read_npz(path: Path) -> Mapping[str, Array]:
    """Return the arrays by lower-case name."""
    try:
        return {key.lower(): array for key, array in read_npz(path).items()}
    except (ValueError, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> UnreadableFile:
    fix = ""
    if isinstance(error, PythonObjects):
        fix = "Convert them: x.astype(float), y.astype(str)."
    return UnreadableFile(f"{path}: cannot read as {path.suffix}: {error}", fix)


def _named_part(
    arrays: Mapping[str, Array],
    names: Sequence[str],
    path: Path,
    task: str,
    like: Dataset | None,
) -> Dataset | None:
    found = [name for name in names if f"x_{name}" in arrays]
    if not found:
        return None
    name = found[0]
    if f"y_{name}" not in arrays:
        raise DataError(f"{path}: x_{name} without y_{name}", f"Add the array y_{name}.")
    part = Dataset.from_arrays(
        arrays[f"x_{name}"],
        arrays[f"y_{name}"],
        task=task if like is None else ("regress" if like.classes is None else "classify"),
        name=f"{path}, {name} part",
        classes=None if like is None else like.classes,
    )
    if like is not None and part.x.shape[1] != like.x.shape[1]:
        raise DataError(
            f"{path}: x_{name} has {part.x.shape[1]} columns, x_train has {like.x.shape[1]}",
            "Save arrays with the same columns.",
        )
    return part
