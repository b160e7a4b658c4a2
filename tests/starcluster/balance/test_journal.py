"""The journal of checks, and what status shows of it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.balance.journal import journal
from starcluster.balance.journal.money import Entry
from starcluster.commands.status import decisions

ENTRY = Entry(
    time=datetime(2026, 1, 1, tzinfo=UTC),
    nodes=2,
    running_jobs=1,
    waiting_jobs=4,
    action="add 1",
    why='4 jobs (job 3: -l "gpu=1")',
    dollars_per_hour=1.5,
    spent=2.25,
    unknown=("b.large",),
    budget=50.0,
    idle_since=datetime(2025, 12, 31, tzinfo=UTC),
)


class ThisMachine:
    """Runs programs here instead of on a master."""

    def run(self, argv: Sequence[str], *, stdin: str = "") -> Any:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
        return SimpleNamespace(status=done.returncode, stdout=done.stdout)

    def checked(self, argv: Sequence[str], *, stdin: str = "") -> str:
        answer = self.run(argv, stdin=stdin)
        assert answer.status == 0
        return str(answer.stdout)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "new/balance.jsonl"
    script = journal._APPEND.replace(journal.PATH, str(path))
    folder = journal.PATH.rpartition("/")[0]
    monkeypatch.setattr(
        journal, "_APPEND", script.replace(f"mkdir -p {folder}", f"mkdir -p {path.parent}")
    )
    monkeypatch.setattr(journal, "PATH", str(path))
    return path


def test_entries_come_back_and_other_lines_are_skipped(file: Path) -> None:
    ssh: Any = ThisMachine()
    assert journal.last_entries(ssh, 5) == []
    later = replace(ENTRY, time=ENTRY.time + timedelta(minutes=1), idle_since=None, budget=None)
    journal.append(ssh, ENTRY)
    with file.open("a") as lines:
        lines.write('{"time": "cut off\n{}\n[]\n')
    journal.append(ssh, later)
    assert journal.last_entries(ssh, 9) == [ENTRY, later]
    assert journal.last_entries(ssh, 1) == [later]


def test_the_journal_keeps_its_last_lines(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("old\n" * 5000)
    ssh: Any = ThisMachine()
    journal.append(ssh, ENTRY)
    assert len(file.read_text().splitlines()) == 2000
    assert journal.last_entries(ssh, 1) == [ENTRY]


def test_equal_decisions_without_an_action_are_shown_once() -> None:
    nothing = replace(ENTRY, action="none", why="nothing to do")
    other = replace(nothing, why="1 job can start on the current nodes")
    assert decisions([nothing, nothing, ENTRY, ENTRY, nothing, other, other]) == [
        *(nothing, ENTRY, ENTRY),
        *(nothing, other),
    ]
