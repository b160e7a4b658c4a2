"""Plots of spot prices and of a queue; no other module imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from starcluster.aws.model import SpotPrice
from starcluster.errors import MissingExtra
from starmint import extra_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Moment(Protocol):
    """The plotted values of a queue at one moment."""

    @property
    def time(self) -> datetime:
        """Time of the snapshot."""

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""

    @property
    def running_jobs(self) -> int:
        """Number of running jobs."""

    @property
    def waiting_jobs(self) -> int:
        """Number of waiting jobs."""

    @property
    def longest_wait_s(self) -> float:
        """Longest wait of the waiting jobs."""


def write_plot(file: Path, prices: Sequence[SpotPrice], *, title: str, end: datetime) -> None:
    """Write an SVG with a step line for each zone, up to ``end``."""
    figure = new_figure()
    axes: Axes = figure.subplots()
    for zone in sorted({price.zone for price in prices}):
        steps = [price for price in prices if price.zone == zone]
        times = [*(step.time for step in steps), end]
        values = [step.price for step in steps]
        # Matplotlib accepts times, but its type hints do not.
        axes.step(times, [*values, values[-1]], where="post", label=zone)  # type: ignore[arg-type]
    axes.set_ylim(bottom=0)
    axes.set_ylabel("dollars per hour")
    axes.set_title(title)
    axes.legend()
    figure.autofmt_xdate()
    figure.savefig(file, format="svg")


def write_queue_plot(file: Path, moments: Iterable[Moment]) -> None:
    """Write an SVG with three plots over time: jobs, waits and nodes."""
    rows = list(moments)
    times: Any = [row.time for row in rows]
    figure = new_figure()
    jobs, waits, nodes = figure.subplots(3, sharex=True)
    jobs.step(times, [row.running_jobs for row in rows], where="post", label="running")
    jobs.step(times, [row.waiting_jobs for row in rows], where="post", label="waiting")
    jobs.legend()
    waits.step(times, [row.longest_wait_s / 60 for row in rows], where="post")
    nodes.step(times, [row.nodes for row in rows], where="post")
    for axes, name in ((jobs, "jobs"), (waits, "longest wait, minutes"), (nodes, "nodes")):
        axes.set_ylim(bottom=0)
        axes.set_ylabel(name)
    figure.autofmt_xdate()
    figure.savefig(file, format="svg")


def new_figure() -> Figure:
    """Return an empty figure. Raises MissingExtra if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        fix = f"Install it: {extra_command('report')}"
        raise MissingExtra(f"matplotlib is not installed: {error}", fix) from error
    return Figure(figsize=(10, 5), layout="constrained")
