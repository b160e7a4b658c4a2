"""The plots of the value against each variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spearmint.html_report.plots.canvas import GRID, INK, RED, Plot, shades
from spearmint.html_report.plots.digest import Digest, Element, nothing_complete, number
from spearmint.html_report.plots.model_lines import Line, model_lines
from spearmint.html_report.plots.scale import (
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
_EDGES = (-0.03, 1.03)  # heights of outliers
_LETTERS = 88.0  # letters of tick labels that fit along all axes of one row


def plot(digest: Digest, order: Sequence[Element]) -> Plot:
    """Return panels of the first elements in ``order``, or why there is nothing to plot."""
    nothing = nothing_complete(digest)
    if nothing:
        return Plot(name="slices", title=_TITLE, caption=nothing)
    elements = order[:_MOST_PANELS]
    caption = (
        "Each dot is a trial: late trials are darker than early trials. The ring is the best "
        "trial. Outliers are on the edge."
    )
    values = [number(trial) for trial in digest.finite]
    scale = value_scale(values, maximize=digest.experiment.maximize)
    lines = model_lines(digest, elements, scale.position(values).clip(*_EDGES))
    if lines:
        caption += (
            " The line is what a Gaussian process predicts if only this variable of the best trial "
            "changes, the band two standard deviations of this prediction."
        )
    if len(elements) < len(order):
        caption += f" Shows the {len(elements)} most important of {len(order)} dimensions."
    rows, _ = _grid(len(elements))
    return Plot(
        name="slices",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, digest, elements, scale, lines),
        size_in=(9.6, (0.5 if rows > 1 else 1.0) + 2.7 * rows),
    )


def _draw(
    digest: Digest,
    elements: Sequence[Element],
    scale: Scale,
    lines: Sequence[Line | None],
    figure: Figure,
) -> None:
    done = sorted(digest.finite, key=lambda trial: trial.id)
    heights = scale.position([number(trial) for trial in done]).clip(*_EDGES)
    best = done.index(digest.finite[0])
    age: Array = np.linspace(0.15, 1.0, len(done))
    colours = shades(age)
    rows, columns = _grid(len(elements))
    letters = _LETTERS / columns
    for i, element in enumerate(elements):
        axes = figure.add_subplot(rows, columns, i + 1)
        line = lines[i] if lines else None
        if line is not None:
            _predicted(axes, line)
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


def _predicted(axes: Axes, line: Line) -> None:
    """Draw the prediction of the model behind the trials."""
    if not line.joined:
        axes.errorbar(
            line.across, line.mean, line.spread, fmt="_", color=RED, markersize=14, capsize=3
        )
        return
    axes.fill_between(
        line.across, line.mean - line.spread, line.mean + line.spread, color=RED, alpha=0.15, lw=0
    )
    axes.plot(line.across, line.mean, color=RED, linewidth=1.2)


def _grid(panels: int) -> tuple[int, int]:
    """Return the numbers of rows and columns; the last row is as full as possible."""
    rows = math.ceil(panels / _COLUMNS)
    return rows, math.ceil(panels / rows)


def _collide(ticks: Sequence[tuple[float, str]], letters: float) -> bool:
    """Return whether labels overlap on an axis that is ``letters`` letters long."""
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
