"""The plot of the best value so far, with a small panel for each region."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from spearmint.formatting import format_value
from spearmint.html_report.plots.best_value import running_best
from spearmint.html_report.plots.canvas import BLUE, FAINT, INK, SOFT, Plot
from spearmint.html_report.plots.digest import Digest, number
from spearmint.html_report.plots.scale import shorten, value_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 6
_WIDTH_IN = 9.6
_NAME_LETTERS = 18


def plot(digests: Sequence[Digest]) -> Plot:
    """Return the plot, or the reason why there is nothing to plot."""
    title = "Best value so far"
    shown = [digest for digest in digests if digest.finite]
    if not shown:
        several = any(digest.experiment.has_front for digest in digests)
        why = "There are several objectives." if several else "No trial has a finite value yet."
        return Plot(name="regions", title=title, caption=why)
    columns = min(_MOST_COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    return Plot(
        name="regions",
        title=title,
        caption="By trial, with a panel and a scale for each region. The number is its best value.",
        draw=partial(_draw, shown, rows, columns),
        size_in=(_WIDTH_IN, rows * min(2.4, 0.72 * _WIDTH_IN / columns)),
    )


def _draw(digests: Sequence[Digest], rows: int, columns: int, figure: Figure) -> None:
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(w_pad=0.12, h_pad=0.1)  # type: ignore[call-arg]
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.set_axis_off()
    for axes, digest in zip(panels, digests, strict=False):
        _draw_region(axes, digest)


def _draw_region(axes: Axes, digest: Digest) -> None:
    done = sorted(digest.finite, key=lambda trial: trial.id)
    scale = value_scale([number(trial) for trial in done], maximize=digest.experiment.maximize)
    places = scale.position([number(trial) for trial in done])
    inside = (places >= 0.0) & (places <= 1.0)
    ids = [trial.id for trial in done]
    axes.plot(
        [at for at, shown in zip(ids, inside, strict=True) if shown],
        places[inside],
        "o",
        color=BLUE,
        alpha=0.35,
        markersize=2.5,
        markeredgewidth=0,
    )
    steps = running_best(digest)
    if steps:
        x = [at for at, _ in steps] + [max(ids)]
        y = scale.position([value for _, value in steps] + [steps[-1][1]])
        axes.plot(x, y, color=INK, linewidth=1.2, drawstyle="steps-post")
    axes.axhline(-0.12, color=FAINT, linewidth=0.8)
    axes.set_ylim(-0.12, 1.1)
    region = shorten(digest.experiment.region, _NAME_LETTERS)
    axes.set_title(region, loc="left", fontsize=8, color=SOFT, pad=2)
    best = format_value(number(digest.finite[0]), 4) if steps else "none feasible"
    axes.set_title(best, loc="right", fontsize=8, color=INK, fontweight="bold", pad=2)
