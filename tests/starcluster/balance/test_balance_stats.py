"""The statistics and plots of a load balancer."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sge_jobs.model import AccountingRecord
from starcluster.balance.cell.model import Job
from starcluster.balance.decision.decide import Decision, QueueSnapshot
from starcluster.balance.stats.rows import Row, Stats, row_of
from starcluster.commands.loadbalance import stats_for

START = datetime(2026, 1, 1, tzinfo=UTC)


def job(submitted: float, started: float | None, ended: float | None) -> AccountingRecord:
    return AccountingRecord(
        id="1", task="", name="j", owner="ann", host="node001", failed=0, failed_text="",
        exit_status=0, submitted=submitted, started=started, ended=ended, wallclock_s=0.0,
        memory_bytes=0.0,
    )  # fmt: skip


def row_at(hours: float, waiting: int = 0) -> Row:
    waits = tuple(Job(id=str(n), waited_s=60.0 * n) for n in range(waiting))
    snapshot = QueueSnapshot(jobs=waits, age_s={"node001": 5.0})
    return row_of(START + timedelta(hours=hours), snapshot, Decision(add=1, why='a, "b"'), [])


def test_a_row_has_the_means_of_what_ended() -> None:
    waits = tuple(Job(id="1", waited_s=waited_s) for waited_s in (5.0, 70.04))
    snapshot = QueueSnapshot(jobs=waits, running_jobs=2, age_s={"node001": 9.0})
    ended = [job(100, 110, 200), job(100, 130, 160), job(100, None, None)]
    row = row_of(START, snapshot, Decision(drain=("node001",)), ended)
    assert (row.nodes, row.running_jobs, row.waiting_jobs, row.longest_wait_s) == (2, 2, 2, 70.0)
    assert (row.jobs_ended, row.mean_wait_s, row.mean_run_s) == (3, 20.0, 60.0)
    assert (row.add, row.remove) == (0, 1)


def test_lines_are_added_to_a_file_with_one_header(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "s.csv"
    for hours in (0, 1):  # a second balancer appends to the file of the first
        Stats(lookback=timedelta(hours=3), file=file).add(row_at(hours, waiting=2))
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["time"] for row in rows] == [
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T01:00:00+00:00",
    ]
    assert {(row["waiting_jobs"], row["longest_wait_s"], row["why"]) for row in rows} == {
        ("2", "60.0", 'a, "b"')
    }


def test_the_drawing_shows_the_hours_looked_back_upon(tmp_path: Path) -> None:
    stats = Stats(lookback=timedelta(hours=3), plots=tmp_path / "plots")
    for hours in (0, 2, 4, 6.5):
        stats.add(row_at(hours, waiting=int(hours)))
    assert [row.waiting_jobs for row in stats.rows] == [4, 6]
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["queue.svg"]
    text = (tmp_path / "plots" / "queue.svg").read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own file
    for part in ("running", "waiting", "nodes", ".*, minutes"):
        assert re.search(f"<!-- {part} -->", text)


def test_where_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    nothing = {"dump_stats": False, "dump_stats_file": None, "plot": False, "plot_output_dir": None}
    assert stats_for("gpu", 3.0, **nothing) is None  # type: ignore[arg-type]
    wished = stats_for("gpu", 3.0, **(nothing | {"dump_stats": True, "plot": True}))  # type: ignore[arg-type]
    assert wished is not None
    wished.add(row_at(0))
    folder = tmp_path / ".starcluster" / "sge" / "gpu"
    assert sorted(path.name for path in folder.iterdir()) == ["queue.svg", "sge-stats.csv"]
    named = {"dump_stats_file": tmp_path / "a.csv", "plot_output_dir": tmp_path / "b"}
    chosen = stats_for("gpu", 3.0, **(nothing | named))  # type: ignore[arg-type]
    assert chosen is not None
    chosen.add(row_at(0))
    assert (tmp_path / "a.csv").exists()
    assert (tmp_path / "b" / "queue.svg").exists()
