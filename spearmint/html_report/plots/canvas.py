"""All calls of matplotlib and Pillow: the style of the plots, and PNG as bytes, without pyplot."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from spearmint.html_report.plots.scale import Array, Scale

INK, SOFT, FAINT, GRID = "#1f2933", "#52606d", "#b8c2cc", "#e4e9ee"
BLUE, RED = "#0072b2", "#d55e00"
FIVE = (BLUE, RED, "#009e73", "#cc79a7", "#e69f00")
"""Colours for colour-blind readers. Source: Okabe and Ito 2008, Color Universal Design."""

_DPI = 160
_LIGHTEST = 0.93  # yellow above this value is hard to see on white
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot that can be drawn, or the reason why there is nothing to draw.

    Attributes:
        name: Stem of the file name.
        caption: How to read the plot; without ``draw``, why it is missing.
        draw: Draws the plot on an empty figure.
        size_in: Width and height in inches.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Figure], None] | None = None
    size_in: tuple[float, float] = (9.6, 4.6)


def png(plot: Plot) -> bytes:
    """Return the plot as a PNG file. Global settings of matplotlib do not change."""
    if plot.draw is None:
        raise ValueError(f"{plot.name} has nothing to draw: {plot.caption}")
    with style.context(_STYLE), warnings.catch_warnings():
        # Names of variables can contain letters that the font lacks: these appear as boxes.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
        figure = Figure(figsize=plot.size_in, dpi=_DPI, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        plot.draw(figure)
        # savefig would draw twice, the first time for the layout alone.
        canvas.draw()  # type: ignore[no-untyped-call]
        drawn = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    # With 256 colours these plots look the same and need a quarter of the bytes.
    whole = Image.fromarray(drawn).convert("RGB")
    out = io.BytesIO()
    whole.quantize(256, Image.Quantize.FASTOCTREE).save(out, format="png", dpi=(_DPI, _DPI))
    return out.getvalue()


def value_axis(axes: Axes, scale: Scale, label: str, *, grid: bool = True) -> None:
    """Make the y axis show ``scale``; the plot is drawn in units of the scale."""
    ticks = scale.ticks()
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([place for place, _ in ticks], [text for _, text in ticks])
    axes.set_ylabel(label + (" (log scale)" if scale.log else ""))
    if grid:
        axes.grid(visible=True, axis="y")


def count_axis(axes: Axes, label: str, low: float, high: float) -> None:
    """Make the x axis show whole numbers from ``low`` to ``high``."""
    margin = max(0.5, 0.015 * (high - low))
    axes.set_xlim(low - margin, high + margin)
    axes.xaxis.set_major_locator(
        MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1)
    )
    axes.set_xlabel(label)


def shades(goodness: Array) -> list[tuple[float, float, float, float]]:
    """Return a colour of viridis for each element of ``goodness``: 0 is pale, 1 is dark."""
    colours = mpl.colormaps["viridis"](_LIGHTEST * (1.0 - goodness))
    return [(float(r), float(g), float(b), float(a)) for r, g, b, a in colours]


def shade_strip(axes: Axes, left: float, right: float, *, dark_top: bool) -> None:
    """Draw the colours of ``shades`` from 0 to 1 as a vertical strip."""
    heights = np.linspace(0.0, 1.0, 128)
    axes.imshow(
        np.array([[shade] for shade in shades(heights if dark_top else 1.0 - heights)]),
        extent=(left, right, 0.0, 1.0),
        origin="lower",
        aspect="auto",
        zorder=4,
    )


def legend_above(axes: Axes, columns: int) -> None:
    """Draw the legend above the plot, at the right, where it covers no data."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=columns,
        borderaxespad=0.3,
        handletextpad=0.5,
        columnspacing=1.6,
        fontsize=9.5,
        labelcolor=SOFT,
    )


def edge_marks(axes: Axes, x: Sequence[float], places: Array, label: str) -> None:
    """Mark points beyond the ends of the y axis by triangles at its edge."""
    beyond = [(at, place) for at, place in zip(x, places.tolist(), strict=True) if place > 1.0]
    below = [(at, place) for at, place in zip(x, places.tolist(), strict=True) if place < 0.0]
    text: str | None = f"{label} ({len(beyond) + len(below)})"
    for points, marker, edge in ((beyond, "^", 1.035), (below, "v", -0.035)):
        if points:
            axes.plot(
                [at for at, _ in points],
                [edge] * len(points),
                marker,
                color=SOFT,
                markersize=5,
                markeredgewidth=0,
                clip_on=False,
                label=text,
            )
            text = None
