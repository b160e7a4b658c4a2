"""Results in a CSV file: a column for each element of each variable, and a value column."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from spearmint.errors import InputError, did_you_mean, reason_of
from spearmint.formatting import column_name
from spearmint.importing.rows import Row, Table
from spearmint.model import Variable
from spearmint.outputs import Constraint, Objective

DEFAULT_VALUE_COLUMN = "value"
_SECONDS = "seconds"
_STATE, _WITHOUT_VALUE = "state", ("broken", "running")
_AT = "value_at_"  # name of a column, before the step


def read_csv(
    path: Path,
    variables: Sequence[Variable],
    *,
    value_column: str,
    constraints: Sequence[Constraint] = (),
    objectives: Sequence[Objective] = (),
    rungs: Sequence[int] = (),
) -> Table:
    """Return the rows of ``path``. The column names are those of ``spearmint export``.

    The column ``params_NAME``, if there is one, has the values of the variable NAME.
    ``objectives`` are several, each with a column, or none if there is one. The optional column
    ``seconds`` contains durations. With ``rungs``, columns such as ``value_at_3`` have the values
    at these steps; a row with some of them and without a value is a trial that was stopped, unless
    its ``state`` is ``broken`` or ``running``.

    Raises:
        InputError: The file cannot be read, or columns are missing or duplicate.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    lines: list[tuple[int, list[str]]] = []
    start = 1
    try:
        for cells in reader:
            if cells:
                lines.append((start, cells))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}:{start}: invalid CSV: {error}") from None
    header = [name.strip() for name in lines[0][1]] if lines else []
    keys = [key for variable in variables for key in variable.elements()]
    columns = _columns(keys, header)
    wanted = [*columns.values()]
    wanted += [constraint.name for constraint in constraints]
    values = [objective.name for objective in objectives] or [value_column]
    _check_header(path, header, [*wanted, *values])
    steps = {step: f"{_AT}{step}" for step in rungs}
    rows = [
        _row(path, header, line, cells, value_column, steps, columns) for line, cells in lines[1:]
    ]
    used = {*wanted, *values, *steps.values(), _SECONDS, *(["feasible"] if constraints else [])}
    unused = [name for name in header if name not in used]
    return Table(source=path.name, rows=rows, unused=unused)


def _columns(keys: Sequence[str], header: Sequence[str]) -> dict[str, str]:
    """Return the column of each variable: ``params_NAME`` where an export has that."""
    columns: dict[str, str] = {}
    for key in sorted(keys, key=len):  # a variable can have the name of the column of another
        name = column_name(key, keys, (key,))
        columns[key] = name if name in header and name not in columns.values() else key
    return {key: columns[key] for key in keys}


def _check_header(path: Path, header: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in header]
    if missing:
        hints = [did_you_mean(name, header) for name in missing]
        fix = " ".join(dict.fromkeys(filter(None, hints)))
        found = f"The file has: {', '.join(header)}." if header else "The file is empty."
        raise InputError(
            f"{path}: no column {', '.join(repr(name) for name in missing)}",
            f"{found} {fix}".rstrip(),
        )
    if duplicate := [name for name in wanted if header.count(name) > 1]:
        raise InputError(
            f"{path}: duplicate column {duplicate[0]!r}",
            "Rename one of them; --value-column selects the value column by its name.",
        )
    if duplicate := [name for name in wanted if wanted.count(name) > 1]:
        raise InputError(
            f"{path}: column {duplicate[0]!r} is both a variable and the value column",
            "Select another value column with --value-column.",
        )


def _row(
    path: Path,
    header: Sequence[str],
    line: int,
    cells: list[str],
    value_column: str,
    steps: Mapping[int, str],
    columns: Mapping[str, str],
) -> Row:
    if len(cells) != len(header):
        raise InputError(f"{path}:{line}: {len(cells)} cells, but the header has {len(header)}")
    by_name = dict(zip(header, cells, strict=True))
    value, seconds = by_name.get(value_column, "").strip(), by_name.get(_SECONDS)
    curve = {step: text for step, name in steps.items() if (text := by_name.get(name, "").strip())}
    has_ended = by_name.get(_STATE, "").strip() not in _WITHOUT_VALUE
    return Row(
        place=f"line {line}",
        cells=by_name | {key: by_name[name] for key, name in columns.items()},
        value=value,
        seconds=seconds,
        curve=curve,
        stopped=bool(curve) and not value and has_ended,
    )
