"""Write the folders of the packages as two tables: each package, and each folder.

python docs/_tools/rooms_table.py --output docs/_tables/rooms.rst
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rooms import PackageView, read_views

_SUMMARY = ("package", "modules", "largest folder", "boxes", "layers", "imports", "in cycles")
_FOLDERS = ("folder", "layer", "modules", "lines", "imports", "imported by")


def summary_row(view: PackageView) -> tuple[str, ...]:
    """Return the figures of one package."""
    boxes = view.boxes.values()
    largest = max(view.flat, *(box.files for box in view.folders))
    numbers = (
        sum(box.files for box in boxes), largest, len(view.boxes), view.layers,
        len(view.imports), sum(box.cycle for box in boxes),
    )  # fmt: skip
    return (view.package, *(f"{number:,}" for number in numbers))


def folder_rows(view: PackageView) -> list[tuple[str, ...]]:
    """Return a row for each folder, from the top layer down."""
    folders = sorted(view.folders, key=lambda box: (-box.layer, box.name))
    return [
        (
            view.package if box.name == "." else f"{view.package}/{box.name}",
            *(f"{number:,}" for number in (box.layer, box.files, box.lines)),
            str(sum(importer == box.name for importer, _ in view.imports)),
            str(sum(imported == box.name for _, imported in view.imports)),
        )
        for box in folders
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
    views = read_views()
    folders = [row for view in views for row in folder_rows(view)]
    note = ".. Written by docs/_tools/rooms_table.py (make rooms); do not edit.\n\n"
    summary = table(_SUMMARY, [summary_row(view) for view in views])
    text = note + summary + "\n" + table(_FOLDERS, folders)
    arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
