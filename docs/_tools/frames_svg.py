"""Terminal frames as one SVG: a film strip that CSS moves a frame at a time, without a script.

A row that several frames show is stored once. Readers who prefer reduced motion see the last frame.
"""

from __future__ import annotations

import html
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

COLUMN, ROW, FONT = 8.4, 18, 14
"""Width and height of a character, and size of the font, in px."""
_MARGIN = 12
_INK, _PAPER = "#d6dae0", "#14171c"
_FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
COLOURS: Mapping[str, str] = {
    "default": _INK, "black": "#5c6370", "red": "#f47067", "green": "#7fc77f", "brown": "#e3b75e",
    "blue": "#6cb0f5", "magenta": "#c79bf0", "cyan": "#62c9c9", "white": "#ffffff",
    "brightblack": "#8b93a1",
}  # fmt: skip
"""Colours of the palette, by the names of pyte; any other name is six hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Run:
    """Characters of one row with one look."""

    column: int
    text: str
    colour: str = "default"
    bold: bool = False


Row = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a screen, shown for ``seconds``."""

    rows: tuple[Row, ...]
    seconds: float


def paced(frames: Sequence[Frame], *, total: float, hold: float) -> list[Frame]:
    """Return ``frames`` with idle time cut, so that all together last at most ``total`` seconds.

    Args:
        total: Seconds of the loop.
        hold: Seconds for which the last frame stays.
    """
    if not frames:
        return []
    body, budget = frames[:-1], total - hold
    low, high = 0.0, max((frame.seconds for frame in body), default=0.0)
    if sum(frame.seconds for frame in body) > budget:
        for _ in range(50):  # halve the interval until the longest pause fits
            middle = (low + high) / 2
            fits = sum(min(frame.seconds, middle) for frame in body) <= budget
            low, high = (middle, high) if fits else (low, middle)
        high = low
    kept = [Frame(frame.rows, min(frame.seconds, high)) for frame in body]
    return [*kept, Frame(frames[-1].rows, hold)]


def sampled(frames: Sequence[Frame], step: float) -> list[Frame]:
    """Return one frame each ``step`` seconds, the last that began in it; equal ones are merged."""
    starts = [0.0, *accumulate(frame.seconds for frame in frames)]
    ticks = math.ceil(starts[-1] / step - 1e-9)
    ends = ((tick + 1) * step - 1e-9 for tick in range(ticks))
    shown = [frames[bisect_left(starts, end, hi=len(frames)) - 1].rows for end in ends]
    return [Frame(rows, step * len(list(group))) for rows, group in groupby(shown)]


def animation(frames: Sequence[Frame], *, columns: int, label: str) -> str:
    """Return the loop of ``frames`` as an SVG document."""
    total = sum(frame.seconds for frame in frames)
    height = _height(frames)
    clock, stops = 0.0, []
    for number, frame in enumerate(frames):
        stops.append(f"{100 * clock / total:.2f}%{{transform:translateY({-number * height}px)}}")
        clock += frame.seconds
    last = (len(frames) - 1) * height
    style = (
        f".f{{animation:film {total:.1f}s step-end infinite}}"
        f"@keyframes film{{{''.join(stops)}}}"
        f"@media(prefers-reduced-motion:reduce)"
        f"{{.f{{animation:none;transform:translateY({-last}px)}}}}"
    )
    return _document(frames, columns=columns, label=label, style=style)


def still(frame: Frame, *, columns: int, label: str) -> str:
    """Return ``frame`` as an SVG document."""
    return _document([frame], columns=columns, label=label, style="")


def _height(frames: Sequence[Frame]) -> int:
    return max(len(frame.rows) for frame in frames) * ROW


def _document(frames: Sequence[Frame], *, columns: int, label: str, style: str) -> str:
    width, height = round(columns * COLUMN), _height(frames)
    names: dict[Row, str] = {}
    for frame in frames:
        for row in frame.rows:
            if row:
                names.setdefault(row, f"r{len(names)}")
    symbols = "".join(f'<g id="{name}">{_row(row)}</g>' for row, name in names.items())
    film = "".join(
        f'<use href="#{names[row]}" y="{number * height + place * ROW}"/>'
        for number, frame in enumerate(frames)
        for place, row in enumerate(frame.rows)
        if row
    )
    full = f"{width + 2 * _MARGIN} {height + 2 * _MARGIN}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full}" '
        f'width="{width + 2 * _MARGIN}" height="{height + 2 * _MARGIN}" role="img">'
        f"<title>{html.escape(label)}</title>"
        f"<style>text{{font:{FONT}px {_FONTS};fill:{_INK};white-space:pre}}.b{{font-weight:700}}"
        f"{style}</style><defs>{symbols}</defs>"
        f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>'
        f'<svg x="{_MARGIN}" y="{_MARGIN}" width="{width}" height="{height}">'
        f'<g class="f">{film}</g></svg></svg>\n'
    )


def _row(row: Row) -> str:
    return "".join(_run(run) for run in row)


def _run(run: Run) -> str:
    colour = COLOURS.get(run.colour, f"#{run.colour}")
    fill = "" if colour == _INK else f' fill="{colour}" style="fill:{colour}"'
    bold = ' class="b"' if run.bold else ""
    x, length = run.column * COLUMN, len(run.text) * COLUMN
    # Any font, the same columns.
    fit = f' textLength="{length:g}" lengthAdjust="spacingAndGlyphs"' if len(run.text) > 1 else ""
    return (
        f'<text x="{x:g}" y="{ROW - 4}"{fit}{bold}{fill} xml:space="preserve">'
        f"{html.escape(run.text, quote=False)}</text>"
    )
