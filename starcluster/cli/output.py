"""Tables, JSON and questions that commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as text; each column is as wide as its widest cell."""
    lines = [tuple(headings), *(tuple(shown(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def shown(value: object) -> str:
    """Return a value as text: times without microseconds, None as an empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def say_rows(
    items: Sequence[DataclassInstance],
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    as_json: bool,
    none: str,
) -> None:
    """Print ``items`` as JSON or their rows as a table; without items, print ``none``."""
    if as_json:
        say_json([asdict(item) for item in items])
    elif items:
        click.echo(table(headings, rows))
    else:
        click.echo(none)


def say_json(value: Any) -> None:
    """Print JSON; times as ISO 8601."""
    click.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"cannot write {type(value).__name__} as JSON")


def sure(question: str, *, confirmed: bool) -> None:
    """Ask unless ``confirmed``; exit with code 1 if the answer is no."""
    if not confirmed:
        click.confirm(question, abort=True)
