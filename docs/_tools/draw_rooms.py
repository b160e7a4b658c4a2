"""Draw the folders of the five packages in import layers, with the imports between them.

    python docs/_tools/draw_rooms.py --output docs/_static/rooms.png

A filled box is a folder, an empty box is a file. An arrow is an import, and all of them go down.
Boxes that import each other in a cycle are red.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from PIL import Image
from rooms import Box, PackageView, read_views

WIDTH = 11.6
"""Inches; with :data:`DPI` twice the width of a page of the documentation."""
DPI = 115
_ROW = 0.62
_TITLE = 0.55
_GAP = 0.12
_LETTER = 0.084
_FOLDER, _FILE, _RED, _LINE, _BAND = "#cfe3f5", "#ffffff", "#d62728", "#828282", "#f3f4f6"

Place = tuple[float, float, float]
"""Left end, right end and height of a box, in inches."""


def label(box: Box) -> str:
    """Return the text of a box: the name, and how many files and lines it has."""
    if not box.is_folder:
        return f"{box.name}\n{box.lines:,}"
    name = "all files" if box.name == "." else box.name
    return f"{name}\n{box.files} files, {box.lines:,} lines"


def width(box: Box) -> float:
    """Return the width of a box in inches."""
    return 0.2 + _LETTER * max(map(len, label(box).split("\n")))


def rows_of(view: PackageView) -> list[list[Box]]:
    """Return the boxes in rows from the bottom to the top; a full layer has several rows."""
    rows: list[list[Box]] = []
    for layer in range(view.layers):
        boxes = sorted(
            (box for box in view.boxes.values() if box.layer == layer),
            key=lambda box: (not box.is_folder, box.name),
        )
        rows += _wrapped(boxes)
    return rows


def _wrapped(boxes: list[Box]) -> list[list[Box]]:
    rows: list[list[Box]] = [[]]
    left = WIDTH - 0.8
    for box in boxes:
        if rows[-1] and left < width(box):
            rows.append([])
            left = WIDTH - 0.8
        rows[-1].append(box)
        left -= width(box) + _GAP
    return rows


def places_of(view: PackageView, rows: list[list[Box]]) -> dict[str, Place]:
    """Return the place of each box: below the boxes that import it, as far as the row allows."""
    places: dict[str, Place] = {}
    for height in reversed(range(len(rows))):
        row = _in_order(view, rows[height], places)
        free = WIDTH - 0.6 - sum(map(width, row)) - _GAP * (len(row) - 1)
        gap = _GAP + min(free / (len(row) + 1), 1.6)
        left = 0.6 + (free - (gap - _GAP) * (len(row) - 1)) / 2
        for box in row:
            places[box.name] = (left, left + width(box), (height + 0.5) * _ROW)
            left += width(box) + gap
    return places


def _in_order(view: PackageView, row: list[Box], places: dict[str, Place]) -> list[Box]:
    """Return ``row`` from left to right: near their importers, boxes of a cycle side by side."""
    pulls = {box.name: _pull(view, box, places) for box in row}
    cycle = [pulls[box.name] for box in row if box.cycle]
    for box in row:
        if box.cycle:
            pulls[box.name] = sum(cycle) / len(cycle)
    return sorted(row, key=lambda box: (pulls[box.name], box.cycle, box.name))


def _pull(view: PackageView, box: Box, places: dict[str, Place]) -> float:
    above = [
        (sum(places[importer][:2]) / 2, count)
        for (importer, imported), count in view.imports.items()
        if imported == box.name and importer in places
    ]
    weight = sum(count for _, count in above)
    return sum(middle * count for middle, count in above) / weight if weight else WIDTH / 2


def draw(axes: Axes, view: PackageView, rows: list[list[Box]]) -> None:
    """Draw one package."""
    places = places_of(view, rows)
    top = len(rows) * _ROW
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, top + _TITLE)
    axes.axis("off")
    cycles = sum(box.cycle for box in view.boxes.values())
    note = f", {cycles} boxes in a cycle" if cycles else ""
    counts = [(len(view.boxes), "box"), (view.layers, "layer"), (len(view.imports), "import")]
    boxes, layers, arrows = (f"{count:,} {_plural(noun, count)}" for count, noun in counts)
    title = f"{boxes} in {layers}, {arrows}{note}"
    axes.text(0.1, top + 0.18, view.package, size=17, weight="bold")
    axes.text(0.3 + 0.155 * len(view.package), top + 0.18, title, size=13, color="#444444")
    _draw_layers(axes, view, rows)
    for (importer, imported), count in view.imports.items():
        red = view.boxes[importer].cycle and view.boxes[imported].cycle
        _draw_arrow(axes, places[importer], places[imported], count, red=red)
    for row in rows:
        for box in row:
            _draw_box(axes, box, places[box.name])


def _plural(noun: str, count: int) -> str:
    ending = "es" if noun.endswith("x") else "s"
    return noun if count == 1 else noun + ending


def _draw_layers(axes: Axes, view: PackageView, rows: list[list[Box]]) -> None:
    for layer in range(view.layers):
        heights = [height for height, row in enumerate(rows) if row[0].layer == layer]
        bottom, top = heights[0] * _ROW, (heights[-1] + 1) * _ROW
        axes.axhspan(bottom, top, color=_BAND if layer % 2 else "#ffffff", zorder=0)
        axes.text(0.1, (bottom + top) / 2, str(layer), size=12, color="#999999", va="center")


def _draw_box(axes: Axes, box: Box, place: Place) -> None:
    left, right, height = place
    axes.add_patch(
        FancyBboxPatch(
            (left, height - 0.21), right - left, 0.42,
            boxstyle="round,pad=0,rounding_size=0.06", zorder=3,
            facecolor=_FOLDER if box.is_folder else _FILE,
            edgecolor=_RED if box.cycle else "#333333", linewidth=2 if box.cycle else 0.8,
        )
    )  # fmt: skip
    name, _, amount = label(box).partition("\n")
    middle = (left + right) / 2
    weight = "bold" if box.is_folder else "normal"
    axes.text(middle, height + 0.09, name, size=10.5, ha="center", va="center", weight=weight,
              zorder=4)  # fmt: skip
    axes.text(middle, height - 0.11, amount, size=8.5, ha="center", va="center", zorder=4)


def _draw_arrow(axes: Axes, start: Place, end: Place, count: int, *, red: bool) -> None:
    tail, head = _ends(start, end)
    axes.add_patch(
        FancyArrowPatch(
            tail, head, arrowstyle="-|>", mutation_scale=12 if red else 8, shrinkA=0, shrinkB=0,
            zorder=5 if red else 2, connectionstyle=f"arc3,rad={0.4 if red else 0.04}",
            color=_RED if red else _LINE, alpha=1 if red else 0.55,
            linewidth=1.5 if red else min(0.5 + 0.12 * count, 2.5),
        )
    )  # fmt: skip


def _ends(start: Place, end: Place) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two ends of an arrow between two boxes."""
    if start[2] == end[2]:
        here, there = (1, 0) if start[0] < end[0] else (0, 1)
        return (start[here], start[2]), (end[there], end[2])
    down = -0.21 if start[2] > end[2] else 0.21
    return (sum(start[:2]) / 2, start[2] + down), (sum(end[:2]) / 2, end[2] - down)


def draw_all(views: list[PackageView], output: Path) -> None:
    """Draw the packages one below another into ``output``, a PNG."""
    rows = [rows_of(view) for view in views]
    heights = [len(view_rows) * _ROW + _TITLE for view_rows in rows]
    figure, axes = plt.subplots(
        len(views), 1, squeeze=False, figsize=(WIDTH, sum(heights)),
        gridspec_kw={"height_ratios": heights, "hspace": 0, "left": 0, "right": 1, "top": 1,
                     "bottom": 0},
    )  # fmt: skip
    for view, view_rows, (place,) in zip(views, rows, axes, strict=True):
        draw(place, view, view_rows)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DPI)
    plt.close(figure)
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for color in _palette() for value in color])
    image = Image.open(picture).convert("RGB")
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(output, optimize=True)


def _palette() -> list[tuple[int, ...]]:
    """Return the colours that are drawn, and shades of grey: few, to keep the file small."""
    drawn = [tuple(round(255 * part) for part in to_rgb(color)) for color in (_FOLDER, _RED, _BAND)]
    return [*drawn, (228, 110, 111), *((grey, grey, grey) for grey in range(0, 256, 17))]


def main() -> None:
    """Draw one picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", default="", help="Commit to draw. Default: the working tree.")
    parser.add_argument("--output", type=Path, required=True, help="PNG to write.")
    arguments = parser.parse_args()
    draw_all(read_views(arguments.commit), arguments.output)


if __name__ == "__main__":
    main()
