from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pycuda_nn.cli.main import main

ROWS = 40


def write(path: Path, columns: dict[str, list[object]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
    return path


def columns() -> dict[str, list[object]]:
    rng = np.random.default_rng(0)
    return {
        "id": list(range(7, 7 + ROWS)),
        "size": ["" if i in (3, 5) else round(float(rng.normal()), 3) for i in range(ROWS)],
        "day": [f"2020-01-{i % 28 + 1:02d}" for i in range(ROWS)],
        "name": [f"person {i}" for i in range(ROWS)],
        "color": [("red", "blue", "green", "pink")[i % 4] for i in range(ROWS)],
        "ok": [i % 3 == 0 for i in range(ROWS)],
        "same": [1] * ROWS,
        "void": [""] * ROWS,
        "rare": [5 if i < 9 else "" for i in range(ROWS)],
        "code": [10 + i % 2 for i in range(ROWS)],
        "kind": [("a", "b")[i % 2] for i in range(ROWS)],
    }


def report(file: Path, capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main(["describe", str(file), "--json", *args]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    answer["by"] = {column["name"]: column for column in answer["columns"]}
    return answer


def test_each_column_and_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    got = report(write(tmp_path / "t.csv", columns()), capsys)
    assert (got["rows"], got["target"], got["task"]) == (ROWS, "kind", "classify")
    facts = {name: (c["kind"], c["missing"], c["distinct"]) for name, c in got["by"].items()}
    assert facts == {
        "id": ("number", 0, ROWS), "size": ("number", 2, 38), "day": ("date", 0, 28),
        "name": ("text", 0, ROWS), "color": ("text", 0, 4), "ok": ("bool", 0, 2),
        "same": ("number", 0, 1), "void": ("empty", ROWS, 0), "rare": ("number", 31, 1),
        "code": ("number", 0, 2), "kind": ("text", 0, 2),
    }  # fmt: skip
    assert got["by"]["id"]["values"] == "7 to 46, mean 26.5"
    assert got["by"]["day"]["values"] == "2020-01-01 to 2020-01-28"
    assert got["by"]["color"]["values"] == "blue 10, green 10, pink 10, ..."
    assert got["by"]["ok"]["values"] == "false 26, true 14"
    training = {name: c["training"] for name, c in got["by"].items()}
    assert training["size"] == "1 feature, 1 for missing cells"
    assert training["color"].startswith("4 features")
    assert training["name"].endswith("--drop name")
    assert training["kind"] == "target: classify"
    warned = [warning.split("'")[1] for warning in got["warnings"]]
    assert warned == ["id", "same", "rare", "rare", "code"]
    assert "'kind'" in got["warnings"][-1]  # a copy of the target


def test_what_it_says_is_what_the_training_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = columns()
    for name in ("name", "void", "same", "rare"):
        del table[name]
    file = write(tmp_path / "t.csv", table)
    says = [c["training"] for c in report(file, capsys)["columns"][:-1]]
    count = sum(int(text.split()[0]) + ("missing" in text) for text in says)
    net = str(tmp_path / "n.npz")
    args = ["--set", "epochs=1", "--fractions", "1,0,0", "--backend", "numpy"]
    assert main(["train", "--data", str(file), "--checkpoint", net, *args]) == 0
    assert f"{count} features from 6 columns" in capsys.readouterr().err


def test_a_copy_of_a_number_to_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    price = rng.normal(size=ROWS).round(4)
    table: dict[str, list[object]] = {
        "in dollars": [f"{1.25 * value + 3:.6f}" for value in price],
        "near": list((price + rng.normal(size=ROWS) * 0.01).round(4)),
        "label": ["x", "y"] * (ROWS // 2),
        "price": list(price),
    }
    got = report(write(tmp_path / "t.csv", table), capsys)
    assert got["task"] == "regress"
    assert len(got["warnings"]) == 2
    assert "--drop 'in dollars'" in got["warnings"][0]
    assert got["warnings"][1].endswith("--target label")
    assert report(tmp_path / "t.csv", capsys, "--target", "label")["task"] == "classify"


def test_a_target_with_a_decimal_comma(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a;y\n0,5;0,193\n1,5;1,469\n2,5;9,797\n")
    got = report(file, capsys)["by"]["y"]
    assert got["values"].startswith("0.193 to 9.797,")


@pytest.mark.parametrize(("day", "warns"), [("12", True), ("13", False)])
def test_dates_that_fit_both_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], day: str, warns: bool
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(f"d,l\n01/02/2020,x\n03/{day}/2020,y\n04/02/2020,y\n")
    warned = [text for text in report(file, capsys)["warnings"] if "'d'" in text]
    assert warned == ["'d' fits two orders of dates: read with the month first"] * warns


@pytest.mark.filterwarnings("error")
def test_infinite_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,y\n1,0.5\ninf,1.5\n-inf,2.25\n4,3.5\n")
    got = report(file, capsys)["by"]["a"]
    assert got["training"] == "refused: infinite values"
    assert got["values"] == "1 to 4, mean 2.5"


def test_text_has_aligned_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "t.csv", columns())
    assert main(["describe", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{file}: {ROWS} rows, 11 columns"
    place = lines[2].index("training")
    assert all(line[place - 1] == " " for line in lines[2:14])
    assert len([line for line in lines if line.startswith("warning: ")]) == 5


def test_parquet_and_a_target_that_cannot_be_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1, 2, 2], "ok": [True, False, True]}), file)
    assert report(file, capsys)["task"] == "classify"
    table = {"a": list(range(ROWS)), "name": [f"n{i}" for i in range(ROWS)]}
    got = report(write(tmp_path / "t.csv", table), capsys)
    assert got["task"] == ""
    assert "--target" in got["warnings"][0]


@pytest.mark.parametrize(
    ("name", "fact"), [("none.csv", "no such file"), ("x.npz", "not a table"), ("x", "not a table")]
)
def test_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, fact: str
) -> None:
    assert main(["describe", str(tmp_path / name)]) == 2
    assert fact in capsys.readouterr().err
