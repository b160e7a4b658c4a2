"""The plot of a scaling report; only this module of ``pycuda_nn`` imports matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pycuda_nn.bench.scaling.report import ENGINES, ScalingReport, ScalingRow
from pycuda_nn.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_STYLES = dict(zip(ENGINES, (("#1f6f4a", "o"), ("#b3591e", "s"), ("#5b4b9a", "^")), strict=True))


def check_matplotlib() -> None:
    """Raise MissingExtra if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("matplotlib", "report", "--plot") from error


def write_plot(file: Path, report: ScalingReport) -> None:
    """Write an SVG: rows per second over the number of GPUs, a panel for each network."""
    from matplotlib.figure import Figure

    panels: dict[tuple[str, str, int], list[ScalingRow]] = {}
    for row in report.rows:
        fixed = row.batch_a_gpu if row.scaling == "weak" else row.batch
        panels.setdefault((row.scaling, row.network, fixed), []).append(row)
    high = max(1, -(-len(panels) // _COLUMNS))
    figure = Figure(figsize=(4.2 * _COLUMNS, 3.4 * high), layout="constrained")
    grid = list(figure.subplots(high, _COLUMNS, squeeze=False).flat)
    for axes in grid[len(panels) :]:
        axes.remove()
    for axes, ((scaling, network, fixed), rows) in zip(grid, panels.items(), strict=False):
        where = "a GPU" if scaling == "weak" else "in all"
        axes.set_title(f"{network}\n{scaling} scaling, {fixed:,} {where}", fontsize=9)
        _panel(axes, rows)
    _save(figure, file)


def _panel(axes: Axes, rows: Sequence[ScalingRow]) -> None:
    counts = sorted({row.gpus for row in rows})
    for engine in ENGINES:
        points = [(row.gpus, row.batch / row.us_a_step) for row in rows
                  if row.engine == engine and row.us_a_step]  # fmt: skip
        if not points:
            continue
        color, marker = _STYLES[engine]
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=color, marker=marker, label=engine)
        if x[0] == 1:
            ideal = [y[0] * gpus for gpus in counts]
            axes.plot(counts, ideal, color=color, linestyle=":", linewidth=1)
    axes.set_xticks(counts)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("GPUs (dotted: in proportion)")
    axes.set_ylabel("million rows per second")
    axes.legend(fontsize=8)


def _save(figure: Figure, file: Path) -> None:
    """Write the same bytes for the same figures: no date, no random names."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "scaling", "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
