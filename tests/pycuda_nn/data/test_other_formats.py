"""Files that are not what their names say, and numbers that float32 rounds together."""

from __future__ import annotations

import gzip
import logging
import os
from pathlib import Path

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.data.dataset import task_line
from pycuda_nn.errors import CheckpointError, DataError, EmptyData, UnreadableFile

TEXT = "a,b,label\n" + "".join(f"{i},{i % 7},{'xy'[i % 2]}\n" for i in range(20))
X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (gzip.compress(TEXT.encode()), "gzip"),
        (b"PK\x03\x04rest", "Excel"),
        (b"\xd0\xcf\x11\xe0rest", "Excel"),
        (b"PAR1\x15rest", "Parquet"),
        (TEXT.replace(",3,", ",\0,").encode(), "line 5: a zero byte"),
    ],
)
def test_a_csv_file_that_is_not_text_is_named_by_its_format(
    tmp_path: Path, content: bytes, word: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(UnreadableFile, match=rf"a\.csv.*{word}"):
        nn.load_data(file)


def test_a_column_can_have_the_name_that_begins_another_format(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(TEXT.replace("a,b", "PAR1,PAR2"))
    assert nn.load_data(file).columns == ("PAR1", "PAR2")


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_unicode_text_is_read_with_and_without_its_mark(tmp_path: Path, coding: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(TEXT.encode(coding))
    data = nn.load_data(file)
    assert (data.columns, data.classes, len(data)) == (("a", "b"), ("x", "y"), 20)


def test_a_directory_and_a_pipe_exist_but_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    os.mkfifo(tmp_path / "b.csv")
    for name, word in (("a.csv", "directory"), ("b.csv", "regular")):
        with pytest.raises(UnreadableFile, match=rf"{name}: .*{word}"):
            nn.load_data(tmp_path / name)
    with pytest.raises(CheckpointError, match=r"a\.csv") as caught:
        nn.load_model(tmp_path / "a.csv")
    assert caught.value.exit_code == 2


def test_another_archive_is_not_a_checkpoint(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    with pytest.raises(CheckpointError, match=r"a\.npz .*x, y\n.*--checkpoint") as caught:
        nn.load_model(tmp_path / "a.npz")
    assert caught.value.exit_code == 2


def test_the_only_column_is_named_if_a_title_is_above_the_table(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"# from the lab\n{TEXT}")
    with pytest.raises(EmptyData, match=r"'# from the lab'\n"):
        nn.load_data(file)


def test_python_objects_are_refused_with_the_conversion(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=np.array(["p", "q"], dtype=object)[Y])
    np.save(tmp_path / "x.npy", X.astype(object))
    for name, what in (("a.npz", "array y"), ("x.npy", "the array")):
        with pytest.raises(DataError, match=rf"{what} .*\n.*astype") as caught:
            nn.load_data(tmp_path / name, tmp_path / "x.npy")
        assert "pickle" not in str(caught.value)


def test_values_that_float32_rounds_together_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = X + np.array([1.7e9, 0.0])
    np.savez(tmp_path / "a.npz", x=seconds, y=Y)
    with caplog.at_level(logging.WARNING, "pycuda_nn"):
        nn.load_data(tmp_path / "a.npz")
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        f"{tmp_path}/a.npz: column 0: float32 rounds 20 different values "
        "(1700000000.0 to 1700000038.0) to 1"
    ]
    caplog.clear()
    near = 1000.0 + X * 1e-4  # 20 values of float32, too
    for x in (
        X, near, seconds - seconds.mean(axis=0), np.full((20, 2), 0.1), X.astype(np.float32)
    ):  # fmt: skip
        nn.Dataset.from_arrays(x, Y)
    assert not caplog.records


def test_a_class_without_training_rows_is_told(caplog: pytest.LogCaptureFixture) -> None:
    data = nn.Dataset.from_arrays(X, np.array(["common"] * 19 + ["rare"]))
    nn.split(data, (0.6, 0.2, 0.2))
    assert not caplog.records
    train = nn.split(data, (0.2, 0.4, 0.4))[0]
    assert set(train.y) == {0}
    assert [record.getMessage() for record in caplog.records] == [
        "data: no training rows of 1 of 2 classes, first 'rare'"
    ]


def test_huge_targets_have_a_finite_deviation() -> None:
    data = nn.Dataset.from_arrays(X, X[:, 0] * 1e30)
    assert "mean 1.9e+31, deviation 1.153e+31" in task_line(data)
