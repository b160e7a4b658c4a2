"""The plots of the value against each variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spearmint.html_report.canvas import GRID, INK, Plot, shades
from spearmint.html_report.digest import Digest, Element, nothing_complete, number
from spearmint.html_report.scale import (
    Array,
    Scale,
    shorten,
    value_scale,
    variable_places,
    variable_scale,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Value against each variable"
_MOST_PANELS = 12
_COLUMNS = 4
_LETTERS = 88.0  # of a tick's label, side by side along the axes of one row


def plot(digest: Digest, order: Sequence[Element]) -> Plot:
    """Return one panel for each of the first elements in ``order``, or why there is none."""
    nothing = nothing_complete(digest)
    if nothing:
        return Plot(name="slices", title=_TITLE, caption=nothing)
    elements = order[:_MOST_PANELS]
    caption = (
        "Each dot is a trial, early ones faint, late ones strong; the ring is the best. "
        "Values far off lie on the edge."
    )
    if len(elements) < len(order):
        caption += f" The {len(elements)} most important of {len(order)}."
    rows, _ = _grid(len(elements))
    return Plot(
        name="slices",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, digest, elements),
        size_in=(9.6, (0.5 if rows > 1 else 1.0) + 2.7 * rows),
    )


def _draw(digest: Digest, elements: Sequence[Element], figure: Figure) -> None:
    done = sorted(digest.finite, key=lambda trial: trial.id)
    scale = value_scale([number(trial) for trial in done], maximize=digest.experiment.maximize)
    heights = scale.position([number(trial) for trial in done]).clip(-0.03, 1.03)
    best = done.index(digest.finite[0])
    age: Array = np.linspace(0.15, 1.0, len(done))
    colours = shades(age)
    rows, columns = _grid(len(elements))
    letters = _LETTERS / columns
    for i, element in enumerate(elements):
        axes = figure.add_subplot(rows, columns, i + 1)
        across = variable_scale(element.variable)
        x = variable_places(element.variable, [element.of(trial) for trial in done])
        axes.scatter(x, heights, c=colours, s=20 if len(done) < 500 else 6, alpha=0.8, linewidths=0)
        axes.plot(x[best], heights[best], "o", color=INK, markersize=9, markerfacecolor="none")
        _panel(axes, across, element.name, letters)
        ticks = scale.ticks(5)
        first = i % columns == 0
        axes.set_yticks([at for at, _ in ticks], [text if first else "" for _, text in ticks])
        if first:
            axes.set_ylabel("value" + (" (log scale)" if scale.log else ""))


def _grid(panels: int) -> tuple[int, int]:
    """Return rows and columns, the last row as full as can be."""
    rows = math.ceil(panels / _COLUMNS)
    return rows, math.ceil(panels / rows)


def _collide(ticks: Sequence[tuple[float, str]], letters: float) -> bool:
    """Tell whether labels touch on an axis as long as ``letters`` letters."""
    return any(
        (right - left) * letters < (len(text) + len(following)) / 2 + 1.0
        for (left, text), (right, following) in pairwise(ticks)
    )


def _panel(axes: Axes, across: Scale, name: str, letters: float) -> None:
    ticks = across.ticks(4)
    axes.set_xlim(-0.06, 1.06)
    axes.set_ylim(-0.06, 1.06)
    axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    if _collide(ticks, letters):
        axes.tick_params(axis="x", labelrotation=30, labelsize=8)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
    axes.set_xlabel(shorten(name, 26) + (" (log)" if across.log else ""))
    axes.grid(visible=True, color=GRID)
