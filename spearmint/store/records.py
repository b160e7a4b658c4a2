"""Write trace.csv and best_job_and_result.txt in the formats of the original Spearmint."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable

from google.protobuf import text_format

from spearmint.config import experiment_pb2 as pb
from spearmint.layout import Layout, write_text
from spearmint.model import Experiment, Kind, Trial


def trace_line(best: Trial | None, *, candidates: int, pending: int, complete: int) -> str:
    """Return a line of trace.csv: time, best value, best job, candidates, pending, complete."""
    value = best.value if best is not None and best.value is not None else math.nan
    job = best.id if best is not None else -1
    return f"{time.time():.0f},{value:f},{job},{candidates},{pending},{complete}\n"


def best_text(experiment: Experiment, best: Trial) -> str:
    """Return the content of best_job_and_result.txt."""
    blocks = "".join(f"{_block(message)}\n" for message in _parameters(experiment, best))
    return f"Best result: {best.value:f}\nJob-id: {best.id}\nParameters: \n{blocks}"


def _block(message: pb.Parameter) -> str:
    return text_format.MessageToString(message)


def _parameters(experiment: Experiment, trial: Trial) -> Iterable[pb.Parameter]:
    fields = {Kind.FLOAT: "dbl_val", Kind.INT: "int_val", Kind.ENUM: "str_val"}
    for variable in experiment.variables:
        if variable.name not in trial.params:
            continue  # inactive
        message = pb.Parameter(name=variable.name)
        getattr(message, fields[variable.kind]).extend(trial.params[variable.name])
        yield message


class Records:
    """Updates both files. A full disk only delays them, as the database has all data."""

    def __init__(self, layout: Layout, experiment: Experiment, *, grid_size: int) -> None:
        self._layout = layout
        self._experiment = experiment
        self._grid_size = grid_size
        self._written: Trial | None = None

    def update(self, best: Trial | None, *, pending: int, complete: int, broken: int) -> None:
        """Append a line to the trace, and write the best trial if it changed."""
        candidates = max(0, self._grid_size - pending - complete - broken)
        line = trace_line(best, candidates=candidates, pending=pending, complete=complete)
        with contextlib.suppress(OSError):
            _append(self._layout, line)
            if best is not None and best != self._written:
                write_text(self._layout.best, best_text(self._experiment, best))
                self._written = best


def _append(layout: Layout, line: str) -> None:
    """Append ``line``, on a new line even if a full disk truncated the last one."""
    with layout.trace.open("ab+") as file:
        size = file.tell()
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())
