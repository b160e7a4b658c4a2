"""The screen of ``spearmint plan``: the table, and the commands of a row."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from spearmint.errors import next_command
from spearmint.model import Experiment
from spearmint.plan import Row, Wanted

_COLUMNS = (
    "nodes", "type", "at once", "trials", "end p50", "end p90", "cost p50", "cost p90", "teaches",
)  # fmt: skip
_LEFT = ("type",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePlan:
    """The rows of a plan, and what they were made of; ``ended`` are trials of each region."""

    experiment: Experiment
    now: datetime
    by: datetime | None
    wanted: Wanted
    durations: str
    rows: Sequence[Row]
    given_budget: float | None
    given_gpus: float | None
    ended: Sequence[int]
    storage: str | None

    def to_json(self) -> dict[str, Any]:
        """Return all rows as data; times are in ISO 8601."""
        return {
            "now": self.now.isoformat(),
            "by": self.by.isoformat() if self.by else None,
            "budget": self.given_budget,
            "regions": self.wanted.regions,
            "finished": self.wanted.finished,
            "durations": self.durations,
            "plans": [self._row_json(row) for row in self.rows],
        }

    def _row_json(self, row: Row) -> dict[str, Any]:
        data = asdict(row) | {"type": row.offer.type, "spot": row.offer.spot}
        del data["offer"]
        ends = {"end": row.end_s, "end_p90": row.end_p90_s}
        times = {name: self._time(seconds).isoformat() for name, seconds in ends.items()}
        return {**data, **times, "command": self.command(row)}

    def _time(self, seconds: float) -> datetime:
        return (self.now + timedelta(seconds=round(seconds))).astimezone()

    def parts(self, top: int) -> list[RenderableType]:
        """Return the screen: what was asked for, the table, and the commands of its first row."""
        shown = self.rows[:top]
        rest = len(self.rows) - len(shown)
        lines = [f"{rest} more plans: --top={len(self.rows)}"] if rest else []
        first = self.command(shown[0])
        lines += ["", "The first row, for example:", *(f"  {line}" for line in first)]
        return [Text("\n".join(self._head())), self._table(shown), Text("\n".join(lines))]

    def _head(self) -> list[str]:
        wanted = self.wanted
        regions = f"{wanted.regions} regions, " if wanted.regions > 1 else ""
        limits = [f"by {self.by:%Y-%m-%d %H:%M}"] if self.by else []
        limits += [f"for at most ${self.given_budget:.2f}"] if self.given_budget else []
        whole = " and ".join(limits) or "without a limit"
        return [
            f"{self.experiment.name}: {regions}{wanted.finished} trials have ended; "
            f"{self.durations}",
            f"Plans that 9 of 10 searches keep, {whole}:",
        ]

    def _table(self, rows: Sequence[Row]) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in _LEFT else "right")
        for row in rows:
            table.add_row(
                str(row.nodes),
                Text(row.offer.label),
                str(row.at_once),
                str(row.trials),
                self._clock(row.end_s),
                self._clock(row.end_p90_s),
                f"${row.dollars:.2f}",
                f"${row.dollars_p90:.2f}",
                f"{row.worth * 100:.0f} %",
            )
        return table

    def _clock(self, seconds: float) -> str:
        end = self._time(seconds)
        is_today = end.date() == self.now.astimezone().date()
        return f"{end:%H:%M}" if is_today else f"{end:%m-%d %H:%M}"

    def command(self, row: Row) -> list[str]:
        """Return the commands that do what a row says."""
        bid = ["-b", f"{row.offer.dollars:g}"] if row.offer.spot else []
        start = ["starcluster", "start", "-s", str(row.nodes), "-i", row.offer.type, *bid, "TAG"]
        whole = of_each(self.ended, row.trials)
        options = [f"--max-concurrent={row.at_once}", f"--max-finished-jobs={max(whole, 1)}"]
        if self.given_budget:
            options.append(f"--budget={self.given_budget:g}")
        if self.given_gpus is not None:
            options.append(f"--gpus={self.given_gpus:g}")
        if self.storage:
            options.append(f"--storage={self.storage}")
        search = next_command("--driver=SGE", *options, self.experiment.directory)
        return [search] if self.wanted.master else [shlex.join(start), search]


def of_each(ended: Sequence[int], new: int) -> int:
    """Return the largest number of trials of each region with at most ``new`` more in all."""
    counts, total = sorted(ended), new
    for at, count in enumerate(counts):
        total += count
        level = total // (at + 1)
        if level <= min(counts[at + 1 : at + 2], default=level):
            return level
    return new
