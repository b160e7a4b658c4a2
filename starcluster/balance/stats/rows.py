"""Statistics of a load balancer: rows of a CSV file, and plots of the last hours."""

from __future__ import annotations

import csv
import statistics
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path

from sge_jobs import AccountingRecord
from starcluster.balance.decision.decide import Decision, QueueSnapshot
from starcluster.balance.stats.plots import write_queue_plot

PLOT = "queue.svg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A cluster and its queue at one moment: one row of the CSV file.

    Attributes:
        longest_wait_s: Longest wait of the waiting jobs.
        jobs_ended, mean_wait_s, mean_run_s: Statistics of the jobs of the last hours.
    """

    time: datetime
    nodes: int
    busy_nodes: int
    running_jobs: int
    waiting_jobs: int
    longest_wait_s: float
    free_slots: int
    jobs_ended: int
    mean_wait_s: float
    mean_run_s: float
    add: int
    remove: int
    why: str


def row_of(
    now: datetime, snapshot: QueueSnapshot, decision: Decision, ended: Sequence[AccountingRecord]
) -> Row:
    """Return the row of one snapshot; ``ended`` has the finished jobs of the last hours."""
    waits = [job.started - job.submitted for job in ended if job.started and job.submitted]
    runs = [job.ended - job.started for job in ended if job.ended and job.started]
    return Row(
        time=now,
        nodes=1 + len(snapshot.age_s),
        busy_nodes=len(snapshot.busy),
        running_jobs=snapshot.running_jobs,
        waiting_jobs=len(snapshot.waiting_s),
        longest_wait_s=round(max(snapshot.waiting_s, default=0.0), 1),
        free_slots=snapshot.free_slots,
        jobs_ended=len(ended),
        mean_wait_s=round(statistics.fmean(waits), 1) if waits else 0.0,
        mean_run_s=round(statistics.fmean(runs), 1) if runs else 0.0,
        add=decision.add,
        remove=len(decision.remove) + len(decision.drain),
        why=decision.why,
    )


class Stats:
    """Keeps the rows of the last hours; appends each to a CSV file, and plots all."""

    def __init__(
        self,
        *,
        lookback: timedelta,
        file: Path | None = None,
        plots: Path | None = None,
        draw: Callable[[Path, Iterable[Row]], None] = write_queue_plot,
    ) -> None:
        """Prepare.

        Args:
            lookback: Length of the period that is kept and plotted.
            file: CSV file; rows are appended if it exists.
            plots: Directory of the plot; created if missing.
            draw: Writes the plot.
        """
        self.lookback, self._file, self._plots, self._draw = lookback, file, plots, draw
        self.rows: deque[Row] = deque()

    def add(self, row: Row) -> None:
        """Add a row, and write it."""
        self.rows.append(row)
        while self.rows[0].time < row.time - self.lookback:
            self.rows.popleft()
        if self._file is not None:
            self._append(self._file, row)
        if self._plots is not None:
            self._plots.mkdir(parents=True, exist_ok=True)
            new = self._plots / f".{PLOT}"
            self._draw(new, self.rows)
            new.replace(self._plots / PLOT)

    def _append(self, file: Path, row: Row) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", newline="") as out:
            writer = csv.DictWriter(out, [field.name for field in fields(Row)])
            if not out.tell():
                writer.writeheader()
            writer.writerow(asdict(row) | {"time": row.time.isoformat(timespec="seconds")})
