"""pyarrow and the standard library give the same arrays or the same error."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pycuda_nn as nn
from pycuda_nn.data.table import arrow, read

CELLS = st.one_of(
    st.sampled_from(
        ["", " ", "NA", "nan", "-", "?", "inf", "1_0", "0x1p3", "nan(2)", "+1", " 2 ", "1.", ".5",
         "1e400", "1e-400", "9007199254740993", "1,5", "1.234,5", "1,234", "True", "false",
         "2020-01-02", "2020-01-02T03:04Z", "31.12.2020", "01/02/2020",
         'say "hi"', "two\nlines", "a;b", "é\u00a0",
         "\u2003", "\x1c", "\x00", "0", "01", "sep=;", "NULL ", "١٢"]
    ),
    st.floats().map(str),
    st.integers().map(str),
    st.text(max_size=6),
)  # fmt: skip
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=8)
)


def load(path: Path, *, use_arrow: bool, task: str) -> object:
    reader = mock.patch.object(arrow, "installed", return_value=use_arrow)
    with reader, mock.patch.object(read, "ARROW_CHARS", 0):
        try:
            return nn.load_data(path, table=nn.TableOptions(text="one-hot"), task=task)
        except nn.PycudaNNError as error:
            return str(error)


def check_same(content: bytes, task: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(content)
        ours = load(path, use_arrow=False, task=task)
        arrows = load(path, use_arrow=True, task=task)
    if isinstance(ours, nn.Dataset):
        assert isinstance(arrows, nn.Dataset), arrows
        np.testing.assert_array_equal(ours.x, arrows.x)
        np.testing.assert_array_equal(ours.y, arrows.y)
        assert (ours.columns, ours.classes, ours.encoding) == (
            arrows.columns, arrows.classes, arrows.encoding,
        )  # fmt: skip
    else:
        assert arrows == ours


@settings(max_examples=300, deadline=None)
@given(
    rows=TABLES,
    header=st.booleans(),
    separator=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    task=st.sampled_from(["auto", "classify", "regress"]),
)
def test_generated_tables(
    rows: list[list[str]], header: bool, separator: str, end: str, quoting: int, task: str
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    if header:
        writer.writerow([f"n{i}" for i in range(len(rows[0]))])
    writer.writerows(rows)
    check_same(text.getvalue().encode("utf-8", "surrogatepass"), task)


@settings(max_examples=300, deadline=None)
@given(content=st.lists(st.sampled_from([*',;"\n\r \tabc1.', "2.5", "NA", "\u00e9"])).map("".join))
@example(content='a,b\n1,"x\n2,y\n')
@example(content='a,b\n1,"x"y"z"\n2,y\n')
@example(content="a,b\n1,2\n \n3,4\n")
@example(content="a,b\n1,2,3\n4\n")
@example(content=";,1;,;2.5")
def test_any_text(content: str) -> None:
    check_same(content.encode(), "auto")


def test_a_large_file_is_read_by_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = arrow.read_columns

    def counted(*args: object) -> object:
        calls.append(1)
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(arrow, "read_columns", counted)
    path = tmp_path / "t.csv"
    path.write_text("a,b,l\n" + "1.5,2.5,x\n" * 60_000 + '2,"3\n",y\n' * 60_000)
    data = nn.load_data(path)
    assert calls == [1]
    assert data.x.shape == (120_000, 2)
    assert data.x.sum(axis=0).tolist() == [210_000, 330_000]


ODD = ["nan(2)", "nan", "0x1p3", "1_0", "inf", "+1", " 1", "1\u00a0", "1e400", "١٢", "True", "1,5"]


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_cell_among_numbers(odd: str) -> None:
    cells = ["1.5", "2", f'"{odd}"', "4e-3"]
    check_same("".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)).encode(), "auto")
