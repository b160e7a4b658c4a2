"""Encodings are learned from the training rows, stored with the model, and used on other files."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pycuda_nn as nn
from pycuda_nn.cli.main import main
from pycuda_nn.data.tabular import table_features
from pycuda_nn.errors import DataError
from pycuda_nn.training import checkpoint as files

ROWS = 60


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table in which text, a date, a truth value and a missing cell tell the class."""
    rng = np.random.default_rng(0)
    lines = ["color,day,ok,size,code,kind"]
    for i in range(ROWS):
        big = rng.random() < 0.5
        color = rng.choice(["red", "pink"] if big else ["blue", "cyan"])
        day = f"2020-0{5 if big else 2}-{i % 28 + 1:02d}"
        size = "" if big and i % 3 == 0 else f"{rng.normal() + 3 * big:.3f}"
        code = ("07", "7", "x")[i % 3]
        lines.append(f"{color},{day},{not big},{size},{code},{'big' if big else 'small'}")
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture
def trained(table: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    net = table.with_name("net.npz")
    args = ["--set", "epochs=60", "--set", "lr=0.01", "--backend", "numpy"]
    assert main(["train", "--data", str(table), "--checkpoint", str(net), *args]) == 0
    assert "classification, 2 classes, from 36 rows" in capsys.readouterr().err.splitlines()
    return net


def test_only_training_rows_are_learned_from(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    rows = [f"{i},{'rare' if i % 2 else 'usual'}{i % 7},{i % 2}" for i in range(40)]
    file.write_text("\n".join(["a,b,l", *rows]))
    plain = nn.load_splits(file)
    held_out = {int(v) for part in (plain.valid, plain.test) for v in part.x[:, 0]}
    for i in held_out:  # other values in held-out rows change nothing that is learned
        rows[i] = f"{'' if i % 3 else 1e6},new{i % 5},{i % 2}"
    file.write_text("\n".join(["a,b,l", *rows]))
    changed = nn.load_splits(file)
    assert changed.train.encoding == plain.train.encoding
    np.testing.assert_array_equal(changed.train.x, plain.train.x)
    mean = np.float32(plain.train.x[:, 0].mean(dtype=np.float64))
    filled = [part.x[:, 0] for part in (changed.valid, changed.test)]
    assert set(np.concatenate(filled).tolist()) == {float(mean), 1e6}


def test_a_table_of_complete_numbers_is_not_changed(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    lines = [",".join([*(repr(float(v)) for v in row), "ab"[i % 2]]) for i, row in enumerate(x)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = nn.load_splits(tmp_path / "t.csv")
    want = nn.split(nn.Dataset.from_arrays(x, np.array(["a", "b"] * 15)))
    for part, other in zip((data.train, data.valid, data.test), want, strict=True):
        np.testing.assert_array_equal(part.x, other.x)
        np.testing.assert_array_equal(part.y, other.y)


def test_the_test_part_after_training(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--checkpoint", str(trained)]) == 0
    error = float(re.findall(r"error ([\d.]+)", capsys.readouterr().out)[0])
    assert error < 0.1


def test_another_file_with_other_columns_first(
    trained: Path, table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [line.split(",") for line in table.read_text().splitlines()]
    other = table.with_name("other.csv")
    order = [5, 3, 0, 4, 1, 2]
    other.write_text("\r\n".join("id;" + ";".join(row[i] for i in order) for row in lines))
    model = nn.load_model(trained)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(table))
    assert not caplog.records
    data = nn.load_data(other, target="kind", classes=model.classes, encoding=model.encoding)
    assert nn.evaluate(model, data).error < 0.1


def test_an_unseen_value_and_a_missing_cell_are_told(
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    new = tmp_path / "new.csv"
    new.write_text("color,day,ok,size,code\nteal,,True,1,07\nmauve,2020-05-01,False,,7\n")
    with caplog.at_level(logging.WARNING):
        assert main(["predict", "--checkpoint", str(trained), "--data", str(new)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    notes = [record.getMessage() for record in caplog.records]
    assert len(notes) == 2
    assert re.search(r"new\.csv: column 'color': 2 rows .*'teal'", notes[0])
    assert re.search(r"new\.csv: column 'day': 1 missing cell, .* mean ", notes[1])


@pytest.mark.parametrize(
    ("header", "row", "facts"),
    [
        ("color,day,ok,size,code", "red,2020-01-01,True,big,7", "line 2: 'big' in column 'size'"),
        ("color,day,ok,size,code", "red,monday,True,1,7", "column 'day' .*text.*date"),
        ("color,day,ok,size,code", "red,5,True,1,7", "column 'day' .*number.*date"),
        ("color,day,ok,size,code", "red,2020-01-01,maybe,1,7", "line 2: 'maybe' in column 'ok'"),
        (
            "color,day,ok,size,code",
            "red,2020-01-01,True,1,7\nred,2020-01-01,yes,1,7",
            "line 3: 'yes' in column 'ok'",
        ),
        ("color,day,ok,code", "red,2020-01-01,True,7", "1 of 5 columns .*'size'"),
    ],
)
def test_cells_of_another_kind_than_in_training(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    header: str, row: str, facts: str,
) -> None:  # fmt: skip
    new = tmp_path / "new.csv"
    new.write_text(f"{header}\n{row}\n{row}\n")
    assert main(["predict", "--checkpoint", str(trained), "--data", str(new)]) == 2
    captured = capsys.readouterr()
    assert re.search(rf"^Error: {re.escape(str(new))}.*{facts}", captured.err)
    assert captured.out == ""


def test_codes_stay_text_where_all_of_them_are_numbers(trained: Path, tmp_path: Path) -> None:
    model = nn.load_model(trained)
    rows = "red,2020-05-01,True,1,07\nred,2020-05-01,True,1,7\n"
    (tmp_path / "new.csv").write_text(f"color,day,ok,size,code\n{rows}")
    data = nn.data.load_features(
        tmp_path / "new.csv", width=model.network.inputs, encoding=model.encoding
    )[0]
    assert model.columns is not None
    names = [f"code={code}" for code in ("07", "7", "x")]
    got = data[:, [model.columns.index(name) for name in names]]
    assert got.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_the_style_of_numbers_is_that_of_the_training(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,l\n"1,5",x\n"2,25",y\n')
    encoding = nn.load_data(file).encoding
    file.write_text('a,l\n"1,234",x\n')  # alone it would be 1234
    data = nn.load_data(file, encoding=encoding, classes=("x", "y"))
    assert data.x.tolist() == [[np.float32(1.234)]]


@pytest.mark.parametrize("rows", ["1.234;x\n2.500;y\n", "1.234;x\n2.500;y\n2.500,5;y\n"])
def test_points_of_thousands_without_a_comma_in_the_column(tmp_path: Path, rows: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a;l\n3.456,50;x\n1.234,25;y\n")
    encoding = nn.load_data(file).encoding
    file.write_text(f"a;l\n{rows}")
    data = nn.load_data(file, encoding=encoding, classes=("x", "y"))
    assert data.x[:2, 0].tolist() == [1234, 2500]


def test_the_style_of_the_target_is_that_of_the_training(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,y\n1,"1,5"\n2,"2,25"\n')
    encoding = nn.load_data(file).encoding
    assert encoding is not None
    stored = nn.Encoding.from_dict(encoding.as_dict())
    file.write_text('a,y\n1,"1,234"\n')  # alone it would be 1234
    assert nn.load_data(file, task="regress", encoding=stored).y.tolist() == [[np.float32(1.234)]]
    old = encoding.as_dict()
    del old["target_style"]
    assert nn.Encoding.from_dict(old).target_style == ""


def test_names_that_are_numbers_are_found_in_the_header(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("2019,2020,y\n1,10,0.5\n2,20,0.7\n3,30,0.9\n")
    encoding = nn.load_data(file).encoding
    file.write_text("2020,2019\n100,1\n200,2\n")
    got = nn.data.load_features(file, width=2, encoding=encoding)[0]
    assert got.tolist() == [[1, 100], [2, 200]]


def test_the_order_of_dates_does_not_change_between_files(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("d,l\n02/01/2020,x\n04/30/2020,y\n")
    encoding = nn.load_data(file).encoding
    file.write_text("d,l\n,x\n02/01/2020,x\n25/04/2020,y\n")
    with pytest.raises(DataError, match=r"line 4: .*'d' has the day first, in training the month"):
        nn.load_data(file, encoding=encoding, classes=("x", "y"))
    file.write_text("d,l\n03/01/2020,x\n02/01/2020,y\n")
    data = nn.load_data(file, encoding=encoding, classes=("x", "y"))
    assert data.x[:, 0].tolist() == [29, 0]


def test_large_numbers_that_differ_little_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    stamps = range(1_700_000_000, 1_700_000_040)
    file.write_text("ts,y\n" + "".join(f"{t},{t + 0.5}\n" for t in stamps))
    data = nn.load_data(file)
    assert data.x[:, 0].tolist() == list(range(40))
    assert data.y[:, 0].tolist() == [t + 0.5 for t in stamps]
    config = nn.TrainConfig(epochs=300, lr=0.02, scale_targets="standard", hidden=(8,))
    model = nn.train(config, data, backend="numpy").model
    assert nn.evaluate(model, data).error < 3
    np.testing.assert_allclose(model.predict(file), data.y, rtol=0, atol=6)


def test_a_file_without_names_is_read_by_position(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("".join(f"{i % 5},{'uv'[i % 2]},{'xy'[i % 2]}\n" for i in range(40)))
    model = nn.train(nn.TrainConfig(epochs=40, lr=0.02), nn.load_data(file)).model
    (tmp_path / "new.csv").write_text("3,u\n3,v\n")
    assert model.predict(tmp_path / "new.csv").tolist() == ["x", "y"]
    (tmp_path / "new.csv").write_text("3,u,1\n3,v,2\n")
    with pytest.raises(DataError, match=r"new\.csv: 3 columns, .* 2\n"):
        model.predict(tmp_path / "new.csv")


def test_an_empty_column_is_left_out_and_not_needed_later(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b,l\n1,,x\n2,,y\n")
    data = nn.load_data(file)
    assert data.columns == ("a",)
    file.write_text("a,l\n1,x\n2,y\n")
    again = nn.load_data(file, encoding=data.encoding)
    np.testing.assert_array_equal(again.x, data.x)


def test_an_empty_column_of_a_file_without_names_shifts_no_other(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(",1,u,x\n,2,v,y\n,3,u,x\n")
    data = nn.load_data(file)
    assert data.columns == ("c1", "c2=u", "c2=v")
    assert data.x.tolist() == [[1, 1, 0], [2, 0, 1], [3, 1, 0]]
    file.write_text("9,3,v,x\n8,1,u,y\n")
    assert nn.load_data(file, encoding=data.encoding).x.tolist() == [[3, 0, 1], [1, 1, 0]]
    for text in (",3,v\n,1,u\n", "3,v\n1,u\n"):
        file.write_text(text)
        x, _ = table_features(file, columns=None, encoding=data.encoding)
        assert x.tolist() == [[3, 0, 1], [1, 1, 0]], text


def test_many_values_are_hashed_the_same_way_in_every_file(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,l\n" + "".join(f"n{i % 70},{i % 2}\n" for i in range(280)))
    data = nn.load_data(file)
    assert data.x.shape == (280, 64)
    assert data.x.sum(axis=1).tolist() == [1] * 280
    file.write_text("a,l\nn3,1\nunseen,0\nn3,0\n")
    again = nn.load_data(file, encoding=data.encoding)
    np.testing.assert_array_equal(again.x[[0, 2]], data.x[[3, 73]])
    one_hot = nn.load_data(file, table=nn.TableOptions(text="one-hot"))
    assert one_hot.columns == ("a=n3", "a=unseen")


def test_parquet_and_csv_of_the_same_table_agree(trained: Path, table: Path) -> None:
    model = nn.load_model(trained)
    names, *rows = [line.split(",") for line in table.read_text().splitlines()]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    sizes = pa.array([float(v) if v else None for v in columns.pop("size")])
    flags = pa.array([v == "True" for v in columns.pop("ok")])
    days = pa.array(columns.pop("day")).cast(pa.date32())
    file = table.with_suffix(".parquet")
    pq.write_table(pa.table({"size": sizes, "day": days, "ok": flags, **columns}), file)
    np.testing.assert_array_equal(model.predict_proba(file), model.predict_proba(table))


def test_the_encoding_survives_the_checkpoint_and_a_resume(trained: Path, table: Path) -> None:
    saved = files.load(trained)
    assert saved.encoding == nn.load_splits(table).train.encoding
    again = trained.with_name("again.npz")
    files.save(again, saved)
    assert files.load(again).encoding == saved.encoding
    args = ["--set", "epochs=61", "--set", "lr=0.01", "--backend", "numpy", "--resume"]
    assert main(["train", "--data", str(table), "--checkpoint", str(trained), *args]) == 0
    assert len(files.load(trained).history.reports) == 61


def test_options_of_the_command(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = tmp_path / "n.npz"
    args = ["train", "--data", str(table), "--set", "epochs=1", "--checkpoint", str(net)]
    assert main([*args, "--drop", "day", "--drop", "code", "--na", "pink"]) == 0
    encoding = files.load(net).encoding
    assert encoding is not None
    assert encoding.required == ("color", "ok", "size")
    assert encoding.features[0].marked
    assert main(["evaluate", "--checkpoint", str(net)]) == 0  # reads the table in the same way
    assert main([*args, "--overwrite", "--missing", "refuse"]) == 2
    assert "column 'size'" in capsys.readouterr().err
    assert main([*args, "--overwrite", "--text", "refuse"]) == 2
    assert main([*args, "--overwrite", "--drop", "dya"]) == 2
    assert "'dya' to drop\nDid you mean 'day'?" in capsys.readouterr().err
    assert main(["train", "--data", "digits", "--drop", "a"]) == 2
    assert "--drop" in capsys.readouterr().err
