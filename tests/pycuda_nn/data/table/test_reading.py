"""Tables as other programs write them: separators, decimal commas, encodings, dates, headers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pycuda_nn as nn
from pycuda_nn.data.table.describe import describe
from pycuda_nn.data.table.options import TableOptions
from pycuda_nn.data.table.read import read_table
from pycuda_nn.errors import DataError, EmptyData, UnreadableFile


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def features(path: Path, **options: object) -> dict[str, list[float]]:
    data = nn.load_data(path, **options)  # type: ignore[arg-type]
    assert data.columns is not None
    return {name: data.x[:, i].tolist() for i, name in enumerate(data.columns)}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separators_line_ends_and_marks(
    tmp_path: Path, separator: str, end: str, mark: str
) -> None:
    lines = ["a,b,l", "1,2.5,x", '3,"4",y']
    text = mark + end.join(lines).replace(",", separator)
    data = nn.load_data(write(tmp_path / "t.csv", text))
    assert data.columns == ("a", "b")
    assert data.x.tolist() == [[1, 2.5], [3, 4]]
    assert data.classes == ("x", "y")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a;l\n1,5;x\n-2,25;y\n", [1.5, -2.25]),  # Excel in most of Europe
        ("a;l\n1.234,5;x\n1;y\n", [1234.5, 1]),
        ("a;l\n1,234;x\n1,5;y\n", [1.234, 1.5]),
        ('a,l\n"1,5",x\n"2,25",y\n', [1.5, 2.25]),
        ('a,l\n"1,234",x\n"1,234,567.5",y\n', [1234, 1234567.5]),
        ("sep=;\na;l\n1,5;x\n2;y\n", [1.5, 2]),
        ("1,5;x\n2,5;y\n", [1.5, 2.5]),
    ],
)
def test_numbers_with_commas(tmp_path: Path, text: str, want: list[float]) -> None:
    data = nn.load_data(write(tmp_path / "t.csv", text))
    np.testing.assert_array_equal(data.x[:, 0], np.float32(want))


def test_a_target_with_a_decimal_comma_and_three_decimals(tmp_path: Path) -> None:
    data = nn.load_data(write(tmp_path / "t.csv", "a;y\n0,5;0,193\n1,5;1,469\n"))
    np.testing.assert_array_equal(data.y, np.float32([[0.193], [1.469]]))


def test_labels_keep_their_leading_zeros(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "a,l\n1,007\n2,042\n3,100\n4,007\n")
    data = nn.load_data(file)
    assert data.classes == ("007", "042", "100")
    assert nn.load_data(file, classes=data.classes).y.tolist() == [0, 1, 2, 0]
    assert nn.load_data(file, classes=(7, 42, 100)).y.tolist() == [0, 1, 2, 0]  # of older versions
    assert nn.load_data(file, task="regress").y[:, 0].tolist() == [7, 42, 100, 7]


def test_a_semicolon_inside_the_cells_of_a_comma_file(tmp_path: Path) -> None:
    got = features(write(tmp_path / "t.csv", "1,2,a;b\n3,4,c;d\n5,6,c;d\n"))
    assert got == {"c0": [1, 3, 5], "c1": [2, 4, 6]}


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress: object) -> None:
    packed = compress(b"a,l\n1,x\n2,y\n")  # type: ignore[operator]
    file = write(tmp_path / f"t.csv{suffix}", packed)
    assert features(file) == {"a": [1, 2]}
    for damaged in (packed[:-4], b"a,l\n1,x\n", b""):
        write(file, damaged)
        with pytest.raises(DataError, match=rf"t\.csv\{suffix}: "):
            nn.load_data(file)


def test_a_python_without_a_compression_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(UnreadableFile, match=r"t\.csv\.xz: .*\.xz"):
        nn.load_data(write(tmp_path / "t.csv.xz", b"x"))


def test_text_encodings(tmp_path: Path) -> None:
    text = "ort,l\nKöln,x\nBern,y\nKöln,y\n"
    assert "ort=Köln" in features(write(tmp_path / "t.csv", text.encode("utf-16")))
    with pytest.raises(
        UnreadableFile, match=r"byte 7, line 2\)\n.*iconv -f WINDOWS-1252 "
    ) as error:
        nn.load_data(write(tmp_path / "my t.csv", text.encode("latin-1")))
    assert f"'{tmp_path}/my t.csv' > " in error.value.fix


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["2020-01-31", "2020-02-01"], [0, 1]),
        (["2020/1/31", "2020/2/1"], [0, 1]),
        (["2020-01-31T12:00:00Z", "2020-01-31T12:00:00+06:00"], [0.25, 0]),
        (["2020-01-31 06:00", "2020-01-31 18:00:00.0"], [0, 0.5]),
        (["31.12.1969", "01.01.1970"], [0, 1]),
        (["01/31/2020", "02/01/2020"], [0, 1]),  # the day must be the larger number
        (["31/01/2020", "01/02/2020"], [0, 1]),
    ],
)
def test_dates_are_days(tmp_path: Path, cells: list[str], days: list[float]) -> None:
    rows = [f"{cell},{i}" for i, cell in enumerate(cells)]
    got = features(write(tmp_path / "t.csv", "\n".join(["when,l", *rows])))
    assert got == {"when": days}


def test_a_date_that_does_not_exist_is_text(tmp_path: Path) -> None:
    got = features(write(tmp_path / "t.csv", "when,l\n2020-02-30,x\n2020-02-01,y\n"))
    assert list(got) == ["when=2020-02-01", "when=2020-02-30"]


def test_slashed_dates_of_a_semicolon_file_have_the_day_first(tmp_path: Path) -> None:
    assert features(write(tmp_path / "t.csv", "d;l\n01/02/2020;x\n02/02/2020;y\n")) == {"d": [0, 1]}
    assert features(write(tmp_path / "u.csv", "d,l\n01/02/2020,x\n02/02/2020,y\n")) == {
        "d": [0, 31]
    }


@pytest.mark.parametrize("mark", ["", " ", "?", "-", "NA", "n/a", "nan", "NULL", "None", "#N/A"])
def test_marks_of_missing_cells(tmp_path: Path, mark: str) -> None:
    text = f"a,b,c,l\n1,True,red,x\n{mark},{mark},{mark},y\n3,false,blue,y\n"
    got = features(write(tmp_path / "t.csv", text))
    assert got["a"] == [1, 2, 3]
    assert got["b"] == [1, 0.5, 0]
    assert got["c=red"] == [1, 0, 0]
    assert got["a missing"] == got["b missing"] == got["c missing"] == [0, 1, 0]


def test_marks_of_the_user(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "a,b,l\n1,-999,x\n2,4,y\nnone known,5,y\n")
    got = features(file, table=nn.TableOptions(na=("-999.0", "none known")))
    assert got == {
        "a": [1, 2, 1.5], "a missing": [0, 0, 1], "b": [4.5, 4, 5], "b missing": [1, 0, 0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("red,small,yes\nblue,small,no\nred,big,yes\n",
         ("c0=blue", "c0=red", "c1=big", "c1=small")),
        ("color,size,ok\nblue,small,no\nred,big,yes\n",
         ("color=blue", "color=red", "size=big", "size=small")),
        ("2020-01-01,red\n2020-01-02,blue\n", ("c0",)),
        ("a,,b,l\n1,2,3,x\n4,5,6,y\n", ("a", "column 2", "b")),
        ("a,b,\n1,5,\n2,6,\n", ("a",)),  # rows that end with a separator
    ],
)  # fmt: skip
def test_headers(tmp_path: Path, text: str, columns: tuple[str, ...]) -> None:
    assert nn.load_data(write(tmp_path / "t.csv", text)).columns == columns


def test_the_header_can_be_given(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "up,down\nleft,right\nright,left\n")
    assert len(nn.load_data(file)) == 2
    assert len(nn.load_data(file, table=nn.TableOptions(header="no"))) == 3
    file = write(tmp_path / "u.csv", "country,2019,2020\nfr,1,2\nde,3,4\n")
    assert features(file, table=nn.TableOptions(header="yes"))["2019"] == [1, 3]


def test_a_quoted_cell_with_line_ends_and_its_place(tmp_path: Path) -> None:
    text = 'a,note,l\n1,"two\nlines, really",x\n2,"say ""hi""",y\n'
    got = features(write(tmp_path / "t.csv", text))
    assert {'note=say "hi"', "note=two\nlines, really"} <= set(got)
    file = write(tmp_path / "u.csv", text + "3,short,\n")
    with pytest.raises(DataError, match=r"u\.csv, line 5: .*'l' is empty"):
        nn.load_data(file)


@pytest.mark.parametrize("at", ["start", "end"])
def test_an_open_quote_does_not_swallow_the_rest(tmp_path: Path, at: str) -> None:
    lines = [f"{i},x" for i in range(50)]
    lines[2 if at == "start" else -2] = '7,"x'
    line = 4 if at == "start" else 50
    with pytest.raises(DataError, match=rf"t\.csv, line {line}: .*\n.*quote"):
        nn.load_data(write(tmp_path / "t.csv", "\n".join(["a,l", *lines])))


def test_thousands_of_columns(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3000)).round(3)
    header = ",".join([*(f"f{i}" for i in range(3000)), "l"])
    rows = [",".join([*map(str, row), "xy"[i % 2]]) for i, row in enumerate(x)]
    data = nn.load_data(write(tmp_path / "t.csv", "\n".join([header, *rows])))
    np.testing.assert_array_equal(data.x, x.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", r"t\.csv: empty file"),
        ("\ufeff\n\n", r"t\.csv: empty file"),
        ("a,b\n", r"t\.csv: .*\n.*--header no"),
        ("a,l\n1,x\n", r"t\.csv: .*labels .*'x'"),
        ("a,l\n1.5,2.5\n", r"t\.csv: 1 row "),
        ("a,l\n1,2.5\n2,2.5\n", r"t\.csv: .*'l' is 2\.5 .*\n.*--target"),
        ("a,l\n1,x\n2,\n", r"t\.csv, line 3: .*'l'"),
        ("a,l\n1,4\n2,NA\n3,5\n", r"t\.csv, line 3: .*'l' .*'NA'"),
        ("a,l\n" + ",x\n,y\n" * 9, r"t\.csv: all feature cells are missing"),
        ("a,a,l\n1,2,x\n3,4,y\n", r"t\.csv: duplicate column 'a'"),
        ("a,l\n" + "".join(f"{i},{i % 2}\n" for i in range(30)) + "1O,1\n",
         r"t\.csv, line 32: '1O' in column 'a' .*\n.*--na 1O"),
        ("name,l\n" + "".join(f"n{i},{i % 2}\n" for i in range(30)),
         r"t\.csv: .*'name'\n.*--drop name\n.*--text hash"),
        ("a,l\n" + "".join(f"{i},n{i}\n" for i in range(30)), r"t\.csv: .*'l' .*30 .*\n.*--target"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_trained_on(tmp_path: Path, text: str, facts: str) -> None:
    file = write(tmp_path / "t.csv", text)
    with pytest.raises(DataError) as caught:
        nn.load_splits(file)
    assert re.search(facts, str(caught.value))


def test_truth_values_as_labels_are_the_same_in_both_formats(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "a,ok\n1,True\n2,False\n3,True\n")
    pq.write_table(pa.table({"a": [1, 2, 3], "ok": [True, False, True]}), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        data = nn.load_data(tmp_path / name)
        assert (data.classes, data.y.tolist()) == (("False", "True"), [1, 0, 1])
        assert nn.load_data(tmp_path / name, classes=("False", "True", "x")).y.tolist() == [1, 0, 1]


def test_a_parquet_file_of_all_types(tmp_path: Path) -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    columns = {
        "flag": pa.array([True, None, False]),
        "day": pa.array([date(2020, 1, 1), None, date(2020, 1, 3)]),
        "time": pa.array([datetime(2020, 1, 1, 12, tzinfo=UTC)] * 3, pa.timestamp("ns", "UTC")),
        "price": pa.array([Decimal("1.50"), Decimal("2.50"), None]),
        "kind": pa.array(["b", None, "a"]).dictionary_encode(),
        "void": pa.nulls(3),
        "number": pa.array(["1,5", "2,5", "3"]),
        "l": pa.array(["x", "y", "y"]),
    }
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), file)
    assert features(file) == {
        "flag": [1, 0.5, 0], "flag missing": [0, 1, 0],
        "day": [0, 1, 2], "day missing": [0, 1, 0],
        "time": [0, 0, 0],
        "price": [1.5, 2.5, 2], "price missing": [0, 0, 1],
        "kind=a": [0, 0, 1], "kind=b": [1, 0, 0], "kind missing": [0, 1, 0],
        "number": [1.5, 2.5, 3],
    }  # fmt: skip
    pq.write_table(pa.table({"a": pa.array([[1], [2]]), "l": ["x", "y"]}), file)
    with pytest.raises(DataError, match=r"'a' .*list.*\n.*--drop"):
        nn.load_data(file)
    pq.write_table(pa.table({"a": pa.array([], pa.int8()), "l": pa.array([], pa.int8())}), file)
    with pytest.raises(EmptyData, match=r"t\.parquet: 0 rows"):
        nn.load_data(file)


CODES = [
    "zip,size,y\n01234,1,5\n98765,2,6\n01234,3,7\n",
    "zip,size,y\n01234,1,5\n,2,6\n98765,3,7\n",
]


@pytest.mark.parametrize("text", CODES)
@pytest.mark.parametrize("with_arrow", [False, True])
def test_codes_with_leading_zeros_are_categories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, with_arrow: bool
) -> None:
    if with_arrow:
        monkeypatch.setattr("pycuda_nn.data.table.read.ARROW_CHARS", 0)
    path = tmp_path / "t.csv"
    path.write_text(text)
    column = read_table(path, TableOptions()).columns["zip"]
    assert (column.kind, column.texts) == ("text", ("01234", "98765"))
    parquet = tmp_path / "t.parquet"
    pq.write_table(pa.table({"zip": ["01234", "98765"], "y": [1, 2]}), parquet)
    column = read_table(parquet, TableOptions()).columns["zip"]
    assert (column.kind, column.texts) == ("text", ("01234", "98765"))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("cell", ["007", '"007"', " 007 ", '" 007"'])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_codes_are_found_in_each_place(
    tmp_path: Path, separator: str, cell: str, place: int
) -> None:
    path = tmp_path / "t.csv"
    lines = [["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]]
    lines[2][place] = cell
    path.write_text("\n".join(map(separator.join, lines)))
    table = read_table(path, TableOptions(), target="abc"[place - 1])
    assert table.columns["abc"[place]].kind == "text"


def test_files_without_codes_are_not_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pycuda_nn.data.table.read.rows", lambda *_: pytest.fail("read twice"))
    path = tmp_path / "t.csv"
    path.write_text("a,day,y\n1e-05,2026-01-02,100\n0.05,2026-01-02 03:04,-0.007\n-07,,0\n")
    kinds = [column.kind for column in read_table(path, TableOptions()).columns.values()]
    assert kinds == ["number", "date"]


def test_many_codes_are_encoded_and_own_codes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("code,y\n" + "".join(f"{i % 30:02d},{i % 7}\n" for i in range(200)))
    assert nn.load_data(path).x.shape == (200, 30)
    report = describe(path, TableOptions()).columns[0]
    assert report.training == "30 features (one for each value)"
    path.write_text("code,y\n" + "".join(f"{i:05d},{i % 7}\n" for i in range(300)))
    with pytest.raises(DataError, match="own text in 'code'"):
        nn.load_data(path)
    report = describe(path, TableOptions()).columns[0]
    assert report.training.endswith("--drop code")


@pytest.mark.parametrize("cells", [["0", "10"], ["0.5", "00.7"], ["-07", "3"], ["1", "2"]])
def test_other_zeros_are_numbers(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    assert read_table(path, TableOptions()).columns["x"].kind == "number"


def test_a_number_of_the_training_may_have_zeros_later(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n007,1\n,2\n")
    table = read_table(path, TableOptions(), wanted=["x"], kinds={"x": (False, "")})
    assert table.columns["x"].kind == "number"
