"""Names of data turned into rows: a file of a known kind, or the built-in ``digits``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from pycuda_nn.data.dataset import Dataset, Label, check_features
from pycuda_nn.data.npz import map_npy, read_npz
from pycuda_nn.data.split import Splits, check_fractions, split
from pycuda_nn.data.table import read_csv, read_parquet
from pycuda_nn.errors import DataError, MissingExtra, did_you_mean

Array = npt.NDArray[Any]
Source = str | Path

TABLES = {".csv": read_csv, ".parquet": read_parquet, ".pq": read_parquet}
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
) -> Dataset:
    """Read features and labels of one source.

    Args:
        source: ``digits``, or a ``.npz`` (arrays x and y), ``.npy``, ``.csv`` or ``.parquet`` file.
        labels: A ``.npy`` file with the labels, for a ``.npy`` source; both are memory-mapped.
        target: Name or number of the target column of a table; default: the last.
        task: ``classify``, ``regress`` or ``auto`` (real targets regress).
        classes: The labels of a model: another one is an error, and one alone is fine.
        columns: Features of a model, taken by name from a table that has names.

    Raises:
        DataError: The file is missing, not readable, or its rows cannot be trained on.
        MissingExtra: The source needs a package that is not installed.
    """
    if str(source) == "digits":
        return _digits(task)
    path = _existing(source)
    if path.suffix in TABLES:
        text = classes is not None and all(isinstance(label, str) for label in classes)
        table = TABLES[path.suffix](
            path, target=target, labelled=True, wanted=columns, text_labels=text
        )
        return Dataset.from_arrays(
            table.x, table.y, task=task, columns=table.columns, name=str(path), classes=classes
        )
    if path.suffix == ".npy":
        if labels is None:
            raise DataError(f"{path}: no labels", "Name their file: --labels y.npy")
        x, y = _read_npy(path), _read_npy(_existing(labels))
        return Dataset.from_arrays(x, y, task=task, name=str(path), classes=classes)
    arrays = _read_npz(path)
    if "x" not in arrays or "y" not in arrays:
        split_already = "x_train" in arrays
        raise DataError(
            f"{path}: no arrays x and y, only {', '.join(arrays) or 'none'}",
            "It is split already: use load_splits." if split_already else "Save it with x=, y=.",
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
) -> Splits:
    """Read a source and cut it; parts that a ``.npz`` has already are taken as they are.

    A ``.npz`` with x_train, y_train may have x_valid (or x_val) and x_test, with their y. What is
    missing there is cut from the training rows in the proportion of ``fractions``.
    """
    check_fractions(fractions)
    path = Path(source)
    arrays = _read_npz(_existing(path)) if path.suffix == ".npz" else {}
    if "x_train" not in arrays:
        data = load_data(source, labels, target=target, task=task)
        return Splits(**dict(zip(_PARTS, split(data, fractions, seed), strict=True)))
    train = _named_part(arrays, ("train",), path, task, None)
    if train is None:  # pragma: no cover - x_train is there
        raise DataError(f"{path}: no training rows")
    valid = _named_part(arrays, _VALID, path, task, train)
    test = _named_part(arrays, ("test",), path, task, train)
    shares = [fractions[0], 0.0 if valid else fractions[1], 0.0 if test else fractions[2]]
    rest = split(train, [share / sum(shares) for share in shares], seed)
    return Splits(train=rest[0], valid=valid or rest[1], test=test or rest[2])


def load_features(
    source: Source, *, width: int, columns: Sequence[str] | None = None
) -> tuple[Array, str]:
    """Read rows to predict, without labels; return (float32 rows, name).

    A table with names gives the ``columns`` of the model in its order, whatever else it has; a
    table without names, or an array, must have ``width`` columns.
    """
    if str(source) == "digits":
        return _digits().x, "digits"
    path = _existing(source)
    names: Sequence[str] | None = None
    if path.suffix in TABLES:
        table = TABLES[path.suffix](path, target=None, labelled=False, wanted=columns)
        x, names = table.x, table.columns
    elif path.suffix == ".npy":
        x = _read_npy(path)
    else:
        arrays = _read_npz(path)
        if "x" not in arrays:
            raise DataError(f"{path}: no array x, only {', '.join(arrays) or 'none'}")
        x = arrays["x"]
    features = check_features(x, name=str(path), columns=names)
    if features.shape[1] != width:
        raise DataError(
            f"{path}: {features.shape[1]} columns, but the model takes {width}",
            "Give the columns that the model was trained on.",
        )
    return features, str(path)


_PARTS = ("train", "valid", "test")


def _existing(source: Source) -> Path:
    path = Path(source)
    if path.suffix not in SUFFIXES:
        if not path.exists() and not path.suffix:
            hint = did_you_mean(str(source), ["digits"])
            raise DataError(f"no data named '{source}'", f"{hint} Or give a file.")
        raise DataError(
            f"{path}: files of type '{path.suffix}' are not read",
            f"Give one of {', '.join(SUFFIXES)}, or the name digits.",
        )
    if not path.is_file():
        raise DataError(f"{path}: no such file", "Check the path.")
    return path


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
        raise DataError(f"{path}: not a readable .npy file: {error}") from error


def _read_npz(path: Path) -> Mapping[str, Array]:
    """Return the arrays under lower-case names."""
    try:
        return {key.lower(): array for key, array in read_npz(path).items()}
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not a readable .npz file: {error}") from error


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
            f"{path}: x_{name} has {part.x.shape[1]} columns, x_train {like.x.shape[1]}",
            "Save parts of one table.",
        )
    return part
