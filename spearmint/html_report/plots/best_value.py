"""The plot of all values and of the best value so far, against trials."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spearmint.formatting import format_value
from spearmint.html_report.plots.canvas import (
    BLUE,
    INK,
    RED,
    SOFT,
    Plot,
    count_axis,
    edge_marks,
    legend_above,
    value_axis,
)
from spearmint.html_report.plots.digest import Digest, nothing_complete, number
from spearmint.html_report.plots.scale import Array, Scale, value_scale
from spearmint.model import Trial, TrialState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Best value"


def plot(digest: Digest) -> Plot:
    """Return the plot, or the reason why there is nothing to plot."""
    nothing = nothing_complete(digest)
    if nothing:
        return Plot(name="best_value", title=_TITLE, caption=nothing)
    word = "highest" if digest.experiment.maximize else "lowest"
    caption = f"The value of each trial, and the {word} value so far."
    if _pruned(digest):
        caption += " Crosses are pruned trials, at the last value that they reported."
    if digest.in_state(TrialState.BROKEN):
        caption += " Red marks on the lower edge are failed (broken) trials."
    if any(trial.excess for trial in digest.ranked):
        caption += " Rings are infeasible trials."
    return Plot(
        name="best_value",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, digest),
    )


def running_best(digest: Digest) -> list[tuple[int, float]]:
    """Return the id and value of each feasible trial that was better than all before it."""
    sign = -1.0 if digest.experiment.maximize else 1.0
    steps: list[tuple[int, float]] = []
    for trial in sorted(digest.finite, key=lambda trial: trial.id):
        if not trial.is_feasible:
            continue
        if not steps or sign * number(trial) < sign * steps[-1][1]:
            steps.append((trial.id, number(trial)))
    return steps


def _draw(digest: Digest, figure: Figure) -> None:
    axes = figure.add_subplot()
    done = sorted(digest.ranked, key=lambda trial: trial.id)
    scale = value_scale([number(trial) for trial in done], maximize=digest.experiment.maximize)
    ids = [float(trial.id) for trial in done]
    places = scale.position([number(trial) for trial in done])
    inside = (places >= 0.0) & (places <= 1.0)
    last = max(trial.id for trial in digest.trials)
    value_axis(axes, scale, "value")
    count_axis(axes, "trial", 1, last)
    size = 6.0 if len(done) < 200 else 3.0
    feasible = np.array([trial.is_feasible for trial in done], dtype=bool)
    _rings(axes, np.array(ids), places, inside & ~feasible)
    axes.plot(
        np.array(ids)[inside & feasible],
        places[inside & feasible],
        "o",
        color=BLUE,
        alpha=0.55 if len(done) < 500 else 0.35,
        markersize=size,
        markeredgewidth=0,
        label="trial",
        zorder=3,
    )
    edge_marks(axes, ids, places, "off the scale")
    _crosses(axes, _pruned(digest), scale)
    _rug(axes, digest.in_state(TrialState.BROKEN))
    steps = running_best(digest)
    if not steps:
        legend_above(axes, 5)
        return
    x = [float(at) for at, _ in steps] + [float(last)]
    y = scale.position([value for _, value in steps] + [steps[-1][1]])
    axes.plot(x, y, color=INK, linewidth=1.5, drawstyle="steps-post", label="best so far")
    word = "best" if digest.best is digest.finite[0] else "best finite value"
    _name_best(axes, digest.finite[0], float(y[-1]), word)
    legend_above(axes, 5)


def _rings(axes: Axes, ids: Array, places: Array, shown: NDArray[np.bool_]) -> None:
    """Draw the infeasible trials, if any."""
    if shown.any():
        axes.plot(
            ids[shown],
            places[shown],
            "o",
            color=RED,
            markersize=5,
            markerfacecolor="none",
            label=f"infeasible ({int(shown.sum())})",
        )


def _pruned(digest: Digest) -> list[tuple[int, float]]:
    """Return the id and the last finite report of each pruned trial that has one."""
    found = []
    for trial in digest.in_state(TrialState.PRUNED):
        reports = [trial.reports[step] for step in sorted(trial.reports)]
        finite = [value for value in reports if math.isfinite(value)]
        if finite:
            found.append((trial.id, finite[-1]))
    return found


def _crosses(axes: Axes, pruned: list[tuple[int, float]], scale: Scale) -> None:
    if pruned:
        axes.plot(
            [at for at, _ in pruned],
            scale.position([value for _, value in pruned]).clip(-0.035, 1.035),
            "x",
            color=SOFT,
            markersize=5,
            clip_on=False,
            label=f"pruned ({len(pruned)})",
        )


def _rug(axes: Axes, broken: list[Trial]) -> None:
    """Mark the broken trials on the lower edge."""
    if broken:
        axes.plot(
            [trial.id for trial in broken],
            [0.0] * len(broken),
            "|",
            color=RED,
            markersize=9,
            markeredgewidth=1.6 if len(broken) < 100 else 0.7,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
            label=f"broken ({len(broken)})",
        )


def _name_best(axes: Axes, best: Trial, place: float, word: str) -> None:
    axes.plot([best.id], [place], "o", color=INK, markersize=8, markerfacecolor="none", zorder=5)
    axes.set_title(
        f"{word}: {format_value(number(best))} (trial {best.id})",
        loc="left",
        fontsize=10,
        fontweight="bold",
    )
