"""Write the folders of the packages as two tables: each package, and each folder.

python docs/_tools/rooms_table.py --output docs/_tables/rooms.rst
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rooms import House, read_houses

_SUMMARY = ("package", "modules", "largest folder", "boxes", "layers", "imports", "in cycles")
_FOLDERS = ("folder", "layer", "modules", "lines", "imports", "imported by")


def summary_row(house: House) -> tuple[str, ...]:
    """Return the figures of one package."""
    rooms = house.rooms.values()
    largest = max(house.flat, *(room.files for room in house.folders))
    numbers = (
        sum(room.files for room in rooms), largest, len(house.rooms), house.floors,
        len(house.imports), sum(room.circle for room in rooms),
    )  # fmt: skip
    return (house.package, *(f"{number:,}" for number in numbers))


def folder_rows(house: House) -> list[tuple[str, ...]]:
    """Return a row for each folder, from the top layer down."""
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
    """Return a simple table of reStructuredText; numbers are aligned right."""
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
    parser.add_argument("--output", type=Path, required=True, help="File to write.")
    arguments = parser.parse_args()
    houses = read_houses()
    folders = [row for house in houses for row in folder_rows(house)]
    note = ".. Written by docs/_tools/rooms_table.py (make rooms); do not edit.\n\n"
    summary = table(_SUMMARY, [summary_row(house) for house in houses])
    text = note + summary + "\n" + table(_FOLDERS, folders)
    arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
