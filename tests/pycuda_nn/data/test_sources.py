from __future__ import annotations

import contextlib
import errno
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pycuda_nn as nn
from pycuda_nn.data.sources import load_features
from pycuda_nn.errors import DataError, EmptyData, MissingExtra, UnreadableFile

X = np.arange(24, dtype=np.float64).reshape(8, 3)
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1])


def csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# --- supported sources ---


def test_digits() -> None:
    data = nn.load_data("digits")
    assert data.x.shape == (1797, 64)
    assert data.x.dtype == np.float32
    assert data.y.dtype == np.int32
    assert data.classes == tuple(range(10))


def test_npz_of_any_numeric_type_and_shape(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, X=np.zeros((8, 2, 2), np.uint8), Y=Y[:, None] + 5)
    data = nn.load_data(file)
    assert data.x.shape == (8, 4)
    assert data.classes == (5, 6, 7)
    np.testing.assert_array_equal(data.y, Y)


def test_npz_with_parts(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, x_train=X, y_train=Y, x_val=X[:2], y_val=Y[:2], x_test=X[:3], y_test=Y[:3])
    parts = nn.load_splits(file)
    assert [len(parts.train), len(parts.valid), len(parts.test)] == [8, 2, 3]
    np.savez(file, x_train=np.tile(X, (5, 1)), y_train=np.tile(Y, 5), x_test=X, y_test=Y)
    parts = nn.load_splits(file, fractions=(0.6, 0.2, 0.2))
    assert [len(parts.train), len(parts.valid), len(parts.test)] == [30, 10, 8]
    np.testing.assert_array_equal(parts.test.x, X)
    with pytest.raises(DataError, match="load_splits"):
        nn.load_data(file)


def test_npy_float32_stays_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", Y)
    data = nn.load_data(tmp_path / "x.npy", tmp_path / "y.npy")
    base = data.x
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    np.testing.assert_array_equal(data.x, X)
    model = nn.train(nn.TrainConfig(epochs=1, scale="none", hidden=(4,)), data).model
    assert model.predict(data.x).shape == (8,)


@pytest.mark.parametrize(
    ("text", "columns", "classes"),
    [
        ("a,b,label\n1,2,x\n3,4,y\n", ("a", "b"), ("x", "y")),
        ("1,2,0\n3,4,1\n", ("c0", "c1"), (0, 1)),
        ("1,2,cat\n3,4,dog\n", ("c0", "c1"), ("cat", "dog")),
        ("0,1,label\n1,2,5\n3,4,7\n", ("0", "1"), (5, 7)),
        ('"a","b","l"\r\n1,2,"x, y"\r\n\r\n3,4,z\r\n', ("a", "b"), ("x, y", "z")),
        ("\ufeffa,b,l\n1,2,1\n3,4,2\n", ("a", "b"), (1, 2)),
        (",0,1,2\n0,1,2,1\n1,3,4,2\n", ("0", "1"), (1, 2)),
    ],
)
def test_csv(tmp_path: Path, text: str, columns: tuple[str, ...], classes: object) -> None:
    data = nn.load_data(csv(tmp_path / "a b:c.csv", text))
    np.testing.assert_array_equal(data.x, [[1, 2], [3, 4]])
    assert data.columns == columns
    assert data.classes == classes


def test_csv_target_by_name_and_number_and_real_targets(tmp_path: Path) -> None:
    file = csv(tmp_path / "a.csv", "price,rooms,size\n1.5,2,30\n2.5,3,40\n")
    for target in ("price", "0", "-3"):
        data = nn.load_data(file, target=target)
        assert data.columns == ("rooms", "size")
        assert data.classes is None
        np.testing.assert_array_equal(data.y, [[1.5], [2.5]])
    assert nn.load_data(file, task="regress").y.dtype == np.float32
    assert nn.load_data(file, target="price", task="classify").classes == (1.5, 2.5)


def test_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    table = pa.table({"a": [1, 2, 3], "l": ["x", "y", "x"], "b": [1.5, 2.5, 3.5]})
    pq.write_table(table, file)
    data = nn.load_data(file, target="l")
    np.testing.assert_array_equal(data.x, [[1, 1.5], [2, 2.5], [3, 3.5]])
    assert data.classes == ("x", "y")
    assert data.columns == ("a", "b")


def test_row_names_of_pandas_are_no_feature_and_no_target(tmp_path: Path) -> None:
    file = csv(tmp_path / "a.csv", ",a,b,l\n0,1,2,5\n7,3,4,6\n")
    assert nn.load_data(file).columns == ("a", "b")
    assert nn.load_data(file, columns=("", "b")).x[:, 0].tolist() == [0, 7]
    file = tmp_path / "a.parquet"
    columns = {
        "a": [1, 2, 3],
        "l": ["x", "y", "x"],
        "id": [4, 5, 6],
        "__index_level_1__": [7, 8, 9],
    }
    about = json.dumps({"index_columns": ["id", "__index_level_1__"], "columns": []})
    pq.write_table(pa.table(columns).replace_schema_metadata({"pandas": about}), file)
    data = nn.load_data(file)
    assert (data.columns, data.classes) == (("a",), ("x", "y"))
    assert nn.load_data(file, target="id", columns=("a",)).classes == (4, 5, 6)
    assert load_features(file, width=2, columns=("a", "id"))[0].tolist() == [[1, 4], [2, 5], [3, 6]]


def test_features_are_found_by_name(tmp_path: Path) -> None:
    file = csv(tmp_path / "new.csv", "id,b,a\n7,2,1\n8,4,3\n")
    x, _ = load_features(file, width=2, columns=("a", "b"))
    np.testing.assert_array_equal(x, [[1, 2], [3, 4]])
    with pytest.raises(DataError, match=r": 1 .*3 .*'c'"):
        load_features(file, width=3, columns=("a", "b", "c"))
    np.save(tmp_path / "x.npy", np.ones((2, 5)))
    with pytest.raises(DataError, match=r"x\.npy: 5 .* 2\b"):
        load_features(tmp_path / "x.npy", width=2)
    np.savez(tmp_path / "x.npz", y=np.ones(3))
    with pytest.raises(DataError, match=r"x\.npz: .*\bx\b.* y$"):
        load_features(tmp_path / "x.npz", width=2)


# --- errors ---


@pytest.mark.parametrize("text", ["", "\n\n", "a,b,label\n", "l\nx\ny\n"])
def test_csv_without_rows_or_features(tmp_path: Path, text: str) -> None:
    with pytest.raises(EmptyData, match=r"bad\.csv: "):
        nn.load_data(csv(tmp_path / "bad.csv", text))


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("a,b,l\n1,2,x\n3,y\n", "line 3: 2 cells.* 3$"),
        ("a,b,l\n1,2,x\n\n3,4,5,6\n", "line 4: 4 cells.* 3$"),
        ("?,2,0\n3,4,1\n", "line 1: .*column 'c0'"),
        (",2,0\n3,4,1\n", "line 1: .*column 'c0'"),
        ("a,b,l\n1,2,x\n3,?,y\n", "line 3: .*column 'b'"),
        ("a,b,l\n1,2,x\n3,,y\n4,,y\n", "line 3: .*column 'b' .* 1 more"),
        ("a,b,l\n1,nan,x\n3,4,y\n", "line 2: .*column 'b'"),
        ("a,b,l\n1,2,x\n-inf,1e99,y\n", r": 2 .*float32.* -inf .*row 1, column 'a'"),
        ("a,a,l\n1,2,x\n", "column 'a'"),
        ("a,b,l\n1,2,x\n3,4,x\n", "labels .*'x'"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, facts: str) -> None:
    file = csv(tmp_path / "bad.csv", text)
    with pytest.raises(DataError) as caught:
        nn.load_data(file, table=nn.TableOptions(missing="refuse"))
    assert str(file) in str(caught.value)
    assert re.search(facts, caught.value.what)


def test_csv_unknown_target_and_wrong_encoding(tmp_path: Path) -> None:
    file = csv(tmp_path / "a.csv", "rooms,price\n1,2\n3,4\n")
    with pytest.raises(DataError, match=r"'prise'\n.*'price'"):
        nn.load_data(file, target="prise")
    with pytest.raises(DataError, match=r"'7'\n.*price"):
        nn.load_data(file, target="7")
    file.write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(UnreadableFile, match=r"UTF-8.*byte 6\b"):
        nn.load_data(file)


@pytest.mark.parametrize(
    ("x", "y", "facts"),
    [
        (X, Y[:-1], ": 8 .* 7 "),
        (X[0], Y[:3], r"features .*\(3,\)"),
        (X[:0], Y[:0], r"\(0, 3\)"),
        (X[:, :0], Y, r"\(8, 0\)"),
        (np.where(X == 5, np.nan, X), Y, r": 1 .*float32.* nan .*row 1, column 2\b"),
        (np.where(X > 20, np.inf, X), Y, r": 3 .*float32.* inf .*row 7, column 0\b"),
        (X * 1e300, Y, r": 23 .*float32.* inf .*row 0, column 1\b"),
        (X, np.zeros(8, int), "labels .* 0$"),
        (X, np.eye(8, dtype=int), None),
        (X, np.ones((8, 2, 2)), r"targets .*\(8, 2, 2\)"),
        (X, np.where(Y == 1, np.nan, 1.0), "targets: 3 .*float32"),
        (X.astype(str), Y, "features .*<U"),
    ],
)
def test_bad_arrays(tmp_path: Path, x: np.ndarray, y: np.ndarray, facts: str | None) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, x=x, y=y)
    if facts is None:  # integers in several columns are real targets
        assert nn.load_data(file).classes is None
        return
    with pytest.raises(DataError) as caught:
        nn.load_data(file)
    assert re.search(facts, caught.value.what)


def test_numbers_in_a_column_of_objects_are_numbers() -> None:
    real = np.array([0.5, 1.5, 0.25, 2, 3.5, 4.5, 5.5, 6.5], dtype=object)
    assert nn.Dataset.from_arrays(X, real).classes is None
    assert nn.Dataset.from_arrays(X, Y.astype(object)).classes == (0, 1, 2)
    real[3] = float("nan")
    with pytest.raises(DataError, match=r"targets: 1 .*float32.* nan .*row 3\b"):
        nn.Dataset.from_arrays(X, real)


def test_missing_and_unknown_files(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"none\.csv: "):
        nn.load_data(tmp_path / "none.csv")
    with pytest.raises(UnreadableFile, match=r"'digit'\n.*'digits'"):
        nn.load_data("digit")
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(UnreadableFile, match=r"a\.xlsx: .*'\.xlsx'\n.*\.npz"):
        nn.load_data(tmp_path / "a.xlsx")
    with pytest.raises(UnreadableFile, match=r"x\.npy: "):
        nn.load_data(tmp_path / "x.npy", tmp_path / "y.npy")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DataError, match=r"x\.npy: .*\n.*--labels y\.npy"):
        nn.load_data(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".parquet"])
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a{suffix}"
    for content in (b"", b"not what the name says"):
        file.write_bytes(content)
        with pytest.raises(UnreadableFile, match=rf"a\{suffix}: .* \{suffix}: "):
            nn.load_data(file, file)


def test_a_damaged_byte_anywhere_is_a_damaged_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for save, file in ((np.savez_compressed, tmp_path / "a.npz"), (np.savez, tmp_path / "b.npz")):
        save(file, x=X, y=Y)
        whole = file.read_bytes()
        for _ in range(300):
            damaged = np.frombuffer(whole, np.uint8).copy()
            damaged[rng.integers(len(damaged))] = rng.integers(256)
            file.write_bytes(damaged.tobytes())
            with contextlib.suppress(DataError):
                nn.load_data(file)


def test_npy_and_npz_are_not_mixed_up(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "x.npy").write_bytes((tmp_path / "a.npz").read_bytes())
    with pytest.raises(UnreadableFile, match=r"x\.npy: .* \.npy: .*archive"):
        nn.load_data(tmp_path / "x.npy", tmp_path / "y.npy")
    (tmp_path / "b.npz").write_bytes((tmp_path / "y.npy").read_bytes())
    with pytest.raises(UnreadableFile, match=r"b\.npz: .* \.npz: .*archive"):
        nn.load_data(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", x=X, y=5)
    with pytest.raises(DataError, match=r"c\.npz: 8 .* 1 "):
        nn.load_data(tmp_path / "c.npz")


def test_a_quote_that_is_never_closed_is_named_with_its_line(tmp_path: Path) -> None:
    lines = "1,2,x\n" * 30_000
    file = csv(tmp_path / "a.csv", f'a,b,l\n1,2,"x\n{lines}')
    with pytest.raises(DataError, match=r"a\.csv, line 2: field larger "):
        nn.load_data(file)


def test_a_csv_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    file = csv(tmp_path / "a.csv", "a,l\n1,x\n")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UnreadableFile, match=r"a\.csv: .*Permission denied"):
        nn.load_data(file)


def test_pickled_arrays_are_not_executed(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, x=np.array([{}], dtype=object), y=Y[:1])
    with pytest.raises(UnreadableFile, match=r"a\.npz: .*array x has Python objects"):
        nn.load_data(file)


def test_bad_npz_keys(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, features=X, y=Y)
    with pytest.raises(DataError, match=r"\bx .*\by .* features, y\n"):
        nn.load_data(file)
    np.savez(file, x_train=X)
    with pytest.raises(DataError, match=r"x_train .*y_train"):
        nn.load_splits(file)
    np.savez(file, x_train=X, y_train=Y, x_test=X[:, :1], y_test=Y)
    with pytest.raises(DataError, match=r"x_test .* 1 .*x_train .*3\b"):
        nn.load_splits(file)
    np.savez(file, x_train=X, y_train=Y, x_test=X, y_test=Y + 1)
    with pytest.raises(DataError, match=r"label 3 .*row 2\b"):
        nn.load_splits(file)


def test_bad_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, None], "l": [0, 1]}), file)
    with pytest.raises(DataError, match=r"a\.parquet, row 1 .*column 'a'"):
        nn.load_data(file, table=nn.TableOptions(missing="refuse"))
    pq.write_table(pa.table({"a": ["x", "y"], "l": [0, 1]}), file)
    with pytest.raises(DataError, match=r"a\.parquet: column 'a' .*text\n.*--drop a"):
        nn.load_data(file, table=nn.TableOptions(text="refuse"))
    pq.write_table(pa.table({"a": [1, 2], "l": [0, None]}), file)
    with pytest.raises(DataError, match=r"a\.parquet: .*'l' .* 1 "):
        nn.load_data(file)
    pq.write_table(pa.table({"a": pa.array([], pa.float64()), "l": pa.array([], pa.int8())}), file)
    with pytest.raises(EmptyData, match=r"a\.parquet: 0 rows"):
        nn.load_data(file)


@pytest.mark.parametrize(
    ("module", "source", "package"),
    [
        ("sklearn.datasets", "digits", "scikit-learn"),
        ("pyarrow.parquet", "a.parquet", "pyarrow"),
    ],
)
def test_a_missing_extra_is_named(
    module: str, source: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / source
    file.write_text("x")
    with pytest.raises(MissingExtra, match=f"install .*{package}>="):
        nn.load_data(source if source == "digits" else file)


def test_an_empty_label_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("a,b,label\n1,2,x\n3,4,\n5,6,y\n")
    with pytest.raises(DataError, match=r"labels\.csv, line 3: .*label .*column 'label'"):
        nn.load_data(str(path))


def test_labels_that_differ_in_an_underscore_are_different_classes(tmp_path: Path) -> None:
    rows = "".join(f"1,2,{label}\n" for label in ("1_1", "11", "1_11", "11_1"))
    data = nn.load_data(csv(tmp_path / "a.csv", f"2019_1,2019_2,2019_3\n{rows}"))
    assert data.classes == ("11", "11_1", "1_1", "1_11")
    assert data.columns == ("2019_1", "2019_2")


def test_labels_of_a_model_that_are_text_stay_text(tmp_path: Path) -> None:
    file = csv(tmp_path / "a.csv", "a,l\n1,01\n2,2\n")
    assert nn.load_data(file).classes == ("01", "2")
    assert nn.load_data(file, classes=("01", "2", "x")).y.tolist() == [0, 1]
    pq.write_table(pa.table({"a": [1, 2], "l": [2, 1]}), tmp_path / "a.parquet")
    assert nn.load_data(tmp_path / "a.parquet", classes=("1", "2", "x")).y.tolist() == [1, 0]
