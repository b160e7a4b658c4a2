"""The target column: labels or numbers, and the task that they ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.table.columns import Cells, is_missing, to_number, typed
from pycuda_nn.data.table.read import Table
from pycuda_nn.errors import DataError

Array = npt.NDArray[Any]

_CODE = re.compile(r"[-+]?0\d+")  # 007 is not 7
_FEW_VALUES = 20  # whole numbers with at most this many values are classes


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """The target of a table.

    Attributes:
        values: Labels (integers, text) or numbers, one per row.
        task: ``classify`` or ``regress``.
        style: How its numbers are written, as in a :class:`Column`.
        why: Why a column of whole numbers is not classes, for users; can be empty.
    """

    values: Array
    task: str
    style: str = ""
    why: str = ""


def read_target(table: Table, task: str, *, text_labels: bool | None = None) -> Target:
    """Return the target of a table that was read with one.

    With the task ``auto``, text and truth values are classes, and so are whole numbers with few
    values: at most 20, and at most 5 or half as many as rows. Other numbers are a regression.

    Args:
        table: A table with labels.
        task: ``auto``, ``classify`` or ``regress``.
        text_labels: Whether to keep the labels as text, even if all of them are numbers. Default:
            if one has leading zeros, and the task is not ``regress``.

    Raises:
        DataError: A label is missing, or nearly every row has its own text.
    """
    labels, style = table.labels, ""
    if labels is None:
        raise DataError(f"{table.path}: read without a target column")
    if isinstance(labels, Cells):  # of a CSV file, or text
        if text_labels is None and task != "regress":
            text_labels = any(_CODE.fullmatch(text.strip()) for text in labels.texts)
        values, style = _values(labels, table, text_labels=bool(text_labels))
    elif labels.dtype.kind == "b" and task != "regress":
        values = labels.astype(str)
    else:
        values = labels.astype(str) if text_labels and labels.dtype.kind in "iu" else labels
    if task != "auto":
        return Target(values=values, task=task, style=style)
    if values.dtype.kind not in "fiu":
        _check_text(values, table)
        return Target(values=values, task="classify")
    return replace(_by_values(values, table), style=style)


def _by_values(values: Array, table: Table) -> Target:
    distinct = np.unique(values)
    if values.dtype.kind == "f" and not np.array_equal(distinct, np.rint(distinct)):
        return Target(values=values, task="regress")
    few = len(distinct) <= _FEW_VALUES and (len(distinct) <= 5 or 2 * len(distinct) <= len(values))
    if few:
        return Target(values=values, task="classify")
    why = f"'{table.target}' has {len(distinct):,} different whole numbers; if they are classes: "
    return Target(values=values, task="regress", why=f"{why}--task classify")


def _values(cells: Cells, table: Table, *, text_labels: bool) -> tuple[Array, str]:
    """Return the labels as integers, real numbers or text, and the style of the numbers."""
    texts = [text.strip() for text in cells.texts]
    known = [text for text in texts if not is_missing(text)]
    gap = "" if "" in texts else None
    if gap is None and known and all(to_number(text) is not None for text in known):
        gap = next((text for text in texts if is_missing(text)), None)
    if gap is not None:
        places = [i for i, text in enumerate(texts) if text == gap]
        row = int(np.flatnonzero(np.isin(cells.codes, places))[0])
        raise DataError(
            f"{table.path}, {table.place(row)}: the label in column '{table.target}' is "
            + (f"missing: '{gap}'" if gap else "empty"),
            "Remove or fill this row before training.",
        )
    labels = np.array(texts)
    if text_labels or any("_" in text for text in texts):  # Python reads 1_1 as 11
        return labels[cells.codes], ""
    column = typed("", cells, (), table.target_style)
    if column.kind == "number" and column.style:
        return column.values, column.style
    for kind in (np.int64, np.float64):
        try:
            return labels.astype(kind)[cells.codes], ""
        except (ValueError, OverflowError):
            continue
    return labels[cells.codes], ""


def _check_text(values: Array, table: Table) -> None:
    distinct = len(np.unique(values))
    if distinct > _FEW_VALUES and 2 * distinct > len(values):
        raise DataError(
            f"{table.path}: the target '{table.target}' has {distinct:,} different texts in "
            f"{len(values):,} rows",
            "Name another column with --target, or keep it with --task classify, or, if they are "
            "numbers, --task regress.",
        )
