"""Write the rooms as two tables: each package before and after, and each folder as it is now.

python docs/_tools/rooms_table.py --before 9e4c379 --output docs/_tables/rooms.rst
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rooms import House, read_houses

_SUMMARY = (
    "package", "", "files", "flat", "largest folder", "rooms", "floors", "arrows", "in circles",
)  # fmt: skip
_FOLDERS = ("folder", "floor", "files", "lines", "imports rooms", "imported by")


def summary_row(house: House, when: str) -> tuple[str, ...]:
    """Return the figures of one package."""
    rooms = house.rooms.values()
    largest = max(house.flat, *(room.files for room in house.folders))
    numbers = (
        sum(room.files for room in rooms), house.flat, largest, len(house.rooms), house.floors,
        len(house.imports), sum(room.circle for room in rooms),
    )  # fmt: skip
    return (house.package, when, *(f"{number:,}" for number in numbers))


def folder_rows(house: House) -> list[tuple[str, ...]]:
    """Return a row for each folder, from the top floor down."""
    folders = sorted(house.folders, key=lambda room: (-room.floor, room.name))
    return [
        (
            house.package if room.name == "." else f"{house.package}/{room.name}",
            *(f"{number:,}" for number in (room.floor, room.files, room.lines)),
            str(sum(importer == room.name for importer, _ in house.imports)),
            str(sum(imported == room.name for _, imported in house.imports)),
        )
        for room in folders
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a simple table of reStructuredText; numbers are at the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(1, *map(len, column)) for column in columns]
    rule = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join(
            text.rjust(width) if text[:1].isdigit() else (text or "\\").ljust(width)
            for text, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n"


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", required=True, help="commit to compare the working tree with")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    arguments = parser.parse_args()
    before, after = read_houses(arguments.before), read_houses()
    pairs = zip(before, after, strict=True)
    summary = [row for old, new in pairs for row in _pair(old, new)]
    folders = [row for house in after for row in folder_rows(house)]
    note = ".. Written by docs/_tools/rooms_table.py (make rooms); do not edit.\n\n"
    text = note + table(_SUMMARY, summary) + "\n" + table(_FOLDERS, folders)
    arguments.output.write_text(text, encoding="utf-8")


def _pair(old: House, new: House) -> list[tuple[str, ...]]:
    return [summary_row(old, "before"), ("\\", *summary_row(new, "after")[1:])]


if __name__ == "__main__":
    main()
