"""The plot of several objectives against each other, with the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations, islice
from typing import TYPE_CHECKING

from spearmint.html_report.plots.canvas import BLUE, INK, RED, Plot, legend_above
from spearmint.html_report.plots.digest import Digest
from spearmint.model import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Pareto front"
_MOST_PANELS = 6
_COLUMNS = 3


def plot(digest: Digest) -> Plot:
    """Return a panel for each pair of objectives, or the reason why there is nothing to plot."""
    if not _finite(digest):
        return Plot(name="pareto_front", title=_TITLE, caption="No trial is complete yet.")
    goals = digest.experiment.objectives
    better = ", ".join(f"{'higher' if g.maximize else 'lower'} {g.name}" for g in goals)
    caption = f"Each dot is a trial. Better is {better}. No trial is better than one of the front "
    caption += "in all objectives."
    if len(goals) > 2:
        caption += " In a panel of two objectives the front of all is not a line."
    if any(trial.excess for trial in digest.trials):
        caption += " Rings are infeasible trials."
    rows = -(-len(_pairs(digest)) // _COLUMNS)
    size = (9.6, 4.6) if rows == 1 else (9.6, 3.4 * rows)
    return Plot(
        name="pareto_front",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, digest),
        size_in=size,
    )


def _finite(digest: Digest) -> list[Trial]:
    return [t for t in digest.trials if t.losses and all(map(math.isfinite, t.losses))]


def _pairs(digest: Digest) -> list[tuple[str, str]]:
    names = [objective.name for objective in digest.experiment.objectives]
    return list(islice(combinations(names, 2), _MOST_PANELS))


def _draw(digest: Digest, figure: Figure) -> None:
    pairs, trials = _pairs(digest), _finite(digest)
    columns = min(len(pairs), _COLUMNS)
    rows = -(-len(pairs) // columns)
    for place, (x, y) in enumerate(pairs, 1):
        axes = figure.add_subplot(rows, columns, place)
        _dots(axes, [t for t in trials if t.is_feasible], x, y, "trial", fill=True)
        _dots(axes, [t for t in trials if not t.is_feasible], x, y, "infeasible", fill=False)
        _line(axes, digest.front, x, y, steps=len(digest.experiment.objectives) == 2)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(visible=True)
        if place == 1:
            legend_above(axes, 3)


def _dots(axes: Axes, trials: Sequence[Trial], x: str, y: str, label: str, *, fill: bool) -> None:
    if trials:
        axes.plot(
            [t.objectives[x] for t in trials],
            [t.objectives[y] for t in trials],
            "o",
            color=BLUE if fill else RED,
            alpha=0.55 if fill else 1.0,
            markersize=5,
            markerfacecolor=BLUE if fill else "none",
            label=f"{label} ({len(trials)})",
        )


def _line(axes: Axes, front: Sequence[Trial], x: str, y: str, *, steps: bool) -> None:
    """Draw the front: steps between its trials for two objectives, dots for more."""
    if front:
        axes.plot(
            [t.objectives[x] for t in front],
            [t.objectives[y] for t in front],
            "-o" if steps else "o",
            drawstyle="steps-post" if steps else "default",
            color=INK,
            linewidth=1.5,
            markersize=5,
            label=f"Pareto front ({len(front)})",
        )
