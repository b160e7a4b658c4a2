"""The plot of intermediate values: one curve for each trial, the best trials in colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spearmint.formatting import format_value
from spearmint.html_report.plots.canvas import FAINT, FIVE, SOFT, Plot, count_axis, value_axis
from spearmint.html_report.plots.digest import Digest, number
from spearmint.html_report.plots.scale import Scale, value_scale
from spearmint.model import Trial, TrialState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Loss curves"
_MOST_CURVES = 200
_MOST_POINTS = 500  # of a curve: the plot has no pixels for more
_NONE = (
    "No trial reported intermediate values. To report them, call in main: "
    "from spearmint import report; report(epoch, loss)."
)


def plot(digest: Digest) -> Plot:
    """Return the plot, or the reason why there is nothing to plot."""
    ranked = [trial for trial in digest.ranked if curve(trial)]
    others = [trial for trial in digest.trials if trial.value is None and curve(trial)]
    if not ranked and not others:
        return Plot(name="loss_curves", title=_TITLE, caption=_NONE)
    caption = "The reported values by step. The best trials are in colour."
    most = len(FIVE) + _MOST_CURVES
    if len(ranked) > most:
        caption += f" Shows {most} of {len(ranked)} complete trials."
    return Plot(
        name="loss_curves",
        title=_TITLE,
        caption=caption,
        draw=partial(_draw, ranked, others, digest.experiment.maximize),
    )


def curve(trial: Trial) -> list[tuple[int, float]]:
    """Return the finite values that a trial reported, by step."""
    rows = sorted((step, value) for step, value in trial.reports.items() if math.isfinite(value))
    every = math.ceil(len(rows) / _MOST_POINTS) or 1
    return rows[::-1][::every][::-1]


def _draw(ranked: Sequence[Trial], others: Sequence[Trial], maximize: bool, figure: Figure) -> None:
    axes = figure.add_subplot()
    best, rest = ranked[: len(FIVE)], ranked[len(FIVE) :]
    if len(rest) > _MOST_CURVES:
        rest = [rest[i] for i in np.linspace(0, len(rest) - 1, _MOST_CURVES).round().astype(int)]
    others = others[-_MOST_CURVES:]
    drawn = [*best, *rest, *others]
    points = [point for trial in drawn for point in curve(trial)]
    scale = value_scale([value for _, value in points], maximize=maximize)
    value_axis(axes, scale, "reported value")
    count_axis(axes, "step", min(step for step, _ in points), max(step for step, _ in points))
    _group(axes, rest, scale, FAINT, "-", "other trials")
    styles = {
        TrialState.PRUNED: "-.",
        TrialState.PAUSED: "-",
        TrialState.BROKEN: ":",
        TrialState.RUNNING: "--",
    }
    for state, style in styles.items():
        group = [trial for trial in others if trial.state is state]
        _group(axes, group, scale, SOFT, style, str(state))
    for rank in reversed(range(len(best))):
        text = f"trial {best[rank].id}: {format_value(number(best[rank]))}"
        _line(axes, best[rank], scale, FIVE[rank], "-", text, width=1.9)
    handles, texts = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        texts[::-1],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=9,
        labelcolor=SOFT,
        title="best trials" if best else None,
        title_fontproperties={"size": 9, "weight": "bold"},
        alignment="left",
        borderaxespad=0.0,
    )


def _group(
    axes: Axes, trials: Sequence[Trial], scale: Scale, colour: str, style: str, label: str
) -> None:
    """Draw trials in the same style, with one entry in the legend."""
    for i, trial in enumerate(reversed(trials)):
        text = f"{label} ({len(trials)})" if i == 0 else ""
        _line(axes, trial, scale, colour, style, text, width=0.9)


def _line(
    axes: Axes, trial: Trial, scale: Scale, colour: str, style: str, label: str, *, width: float
) -> None:
    rows = curve(trial)
    axes.plot(
        [float(step) for step, _ in rows],
        scale.position([value for _, value in rows]),
        style,
        color=colour,
        linewidth=width,
        alpha=0.6 if width < 1 else 1.0,
        marker="o" if len(rows) == 1 else "",
        markersize=4,
        label=label or None,
    )
