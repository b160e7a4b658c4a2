"""The plot with one axis for each element of each variable, and one line for each trial."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spearmint.html_report.plots.canvas import FAINT, INK, SOFT, Plot, shade_strip, shades
from spearmint.html_report.plots.digest import Digest, Element, nothing_complete, number
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

    from spearmint.model import Trial

_TITLE = "Parallel coordinates"
_MOST_AXES = 15
_MOST_LINES = 200
_HIGHLIGHTED = 10


def plot(digest: Digest, order: Sequence[Element]) -> Plot:
    """Return the plot of the first elements in ``order``, or why there is nothing to plot."""
    nothing = nothing_complete(digest)
    if nothing:
        return Plot(name="parallel_coordinates", title=_TITLE, caption=nothing)
    chosen = set(order[:_MOST_AXES])
    elements = [element for element in digest.elements() if element in chosen]
    lines = chosen_lines(digest.finite)
    caption = (
        "Each line is a trial: it connects the trial's variables and its value. The ten best "
        "trials have thick lines. Lines with the same choice are spread around its tick."
    )
    if any(element.variable.when for element in elements):
        caption += " A line has a gap where a variable is inactive."
    if len(elements) < len(order):
        caption += f" Shows the {len(elements)} most important of {len(order)} axes."
    if len(lines) < len(digest.finite):
        caption += f" Shows {len(lines)} of {len(digest.finite)} trials, including the best."
    return Plot(
        name="parallel_coordinates",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, digest, elements, lines),
        size_in=(max(9.6, 0.78 * (len(elements) + 1.5)), 4.8),
    )


def chosen_lines(ranked: Sequence[Trial]) -> list[Trial]:
    """Return at most 200 trials, best first: the best 100, and a sample of the others."""
    if len(ranked) <= _MOST_LINES:
        return list(ranked)
    half = _MOST_LINES // 2
    rest = np.linspace(half, len(ranked) - 1, _MOST_LINES - half).round().astype(int)
    return [*ranked[:half], *(ranked[i] for i in rest)]


def _draw(
    digest: Digest, elements: Sequence[Element], lines: Sequence[Trial], figure: Figure
) -> None:
    axes = figure.add_subplot()
    maximize = digest.experiment.maximize
    values = value_scale([number(trial) for trial in digest.finite], maximize=maximize)
    places = values.position([number(trial) for trial in lines]).clip(0.0, 1.0)
    goodness: Array = places if maximize else 1.0 - places
    columns = [
        variable_places(element.variable, [element.of(trial) for trial in lines])
        for element in elements
    ]
    heights = np.stack([*columns, places])
    x = np.arange(len(elements) + 1)
    colours = shades(goodness)
    for rank in reversed(range(len(lines))):
        best = rank < _HIGHLIGHTED
        axes.plot(
            x,
            heights[:, rank],
            color=colours[rank],
            linewidth=1.8 if best else 1.0,
            alpha=0.95 if best else 0.45,
            solid_joinstyle="round",
        )
    for i, element in enumerate(elements):
        _axis(axes, i, variable_scale(element.variable), element.name)
    _value_axis(axes, len(elements), values, dark_top=maximize)
    axes.set_xlim(-0.65, len(elements) + 0.65)
    axes.set_ylim(-0.04, 1.04)
    axes.axis("off")


def _axis(axes: Axes, x: int, scale: Scale, name: str) -> None:
    axes.plot([x, x], [0.0, 1.0], color=SOFT, linewidth=1.1, zorder=4)
    for place, text in scale.ticks():
        axes.plot([x - 0.03, x], [place, place], color=SOFT, linewidth=1.1, zorder=4)
        _text(axes, x - 0.06, place, text, side="right")
    _name(axes, x, name, "(log)" if scale.log else "")


def _value_axis(axes: Axes, x: int, scale: Scale, *, dark_top: bool) -> None:
    """Draw the last axis as a strip in the colours of the lines."""
    shade_strip(axes, x, x + 0.12, dark_top=dark_top)
    for place, text in scale.ticks():
        _text(axes, x + 0.17, place, text, side="left")
    _name(axes, x, "value", "(log)" if scale.log else "", bold=True)


def _text(axes: Axes, x: float, place: float, text: str, *, side: str) -> None:
    axes.text(
        x,
        place,
        text,
        ha=side,
        va="center",
        fontsize=8,
        color=SOFT,
        zorder=5,
        bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "alpha": 0.88, "linewidth": 0},
    )


def _name(axes: Axes, x: int, name: str, note: str, *, bold: bool = False) -> None:
    axes.text(
        x,
        1.05,
        shorten(name, 22) + (f" {note}" if note else ""),
        rotation=25,
        rotation_mode="anchor",
        ha="left",
        va="bottom",
        fontsize=9.5,
        color=INK,
        fontweight="bold" if bold else "normal",
        clip_on=False,
    )
    axes.plot([x], [0.0], color=FAINT)
