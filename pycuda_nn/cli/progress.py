"""Show the progress of a training: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from pycuda_nn.training.history import EpochReport

Show = Callable[[EpochReport], None]


def train_rmse(report: EpochReport, targets: int) -> float:
    """Return the root mean squared error of the training steps, for ``targets`` per row."""
    return math.sqrt(2 * report.train_loss / targets)


def epoch_line(report: EpochReport, epochs: int, targets: int = 0, rows: int = 0) -> str:
    """Return the line of text of an epoch.

    Args:
        report: The epoch.
        epochs: Epochs of the training.
        targets: Targets per row of a regression, 0 for classes.
        rows: Training rows, to show rows per second; 0 to leave that out.
    """
    width = len(str(epochs))
    line = f"epoch {report.epoch:>{width}}/{epochs}  train "
    if targets:
        line += f"RMSE {train_rmse(report, targets):.5g}"
    else:
        line += f"loss {report.train_loss:.5f}"
    if report.valid_loss is not None and targets:
        line += f"  valid RMSE {report.valid_error:.5g}"
    elif report.valid_loss is not None:
        line += f"  valid loss {report.valid_loss:.5f}  error {report.valid_error:.4f}"
    line += f"  lr {report.lr:.3g}  {report.seconds:.2f} s"
    return f"{line}  {rows / report.seconds:,.0f} rows/s" if rows and report.seconds > 0 else line


@contextlib.contextmanager
def shown(epochs: int, stream: TextIO, targets: int = 0, rows: int = 0) -> Iterator[Show]:
    """Yield a function that shows a report on ``stream``; arguments as in :func:`epoch_line`."""
    if not stream.isatty():
        yield lambda report: print(
            epoch_line(report, epochs, targets, rows), file=stream, flush=True
        )
        return
    rich: Any = importlib.import_module("rich.progress")
    console: Any = importlib.import_module("rich.console").Console(file=stream, highlight=False)
    with rich.Progress(console=console, transient=True) as bar:
        task = bar.add_task("training", total=epochs)

        def show(report: EpochReport) -> None:
            console.print(epoch_line(report, epochs, targets, rows), soft_wrap=True)
            bar.update(task, completed=report.epoch)

        yield show
