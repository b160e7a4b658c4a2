"""Spot prices as a drawing; the only place of this package that imports matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from starcluster.errors import MissingExtra
from starcluster.model import SpotPrice


def write_plot(file: Path, prices: Sequence[SpotPrice], *, title: str, end: datetime) -> None:
    """Write an SVG with a line of steps for each zone, up to ``end``."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        fix = "Install it: pip install 'starmint[report]'"
        raise MissingExtra(f"matplotlib is not installed: {error}", fix) from error
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    for zone in sorted({each.zone for each in prices}):
        steps = [each for each in prices if each.zone == zone]
        times = [*(each.time for each in steps), end]
        values = [each.price for each in steps]
        # Matplotlib takes times; its types do not say so.
        axes.step(times, [*values, values[-1]], where="post", label=zone)  # type: ignore[arg-type]
    axes.set_ylim(bottom=0)
    axes.set_ylabel("dollars per hour")
    axes.set_title(title)
    axes.legend()
    figure.autofmt_xdate()
    figure.savefig(file, format="svg")
