"""The benchmarks of queues start, and the one with faults notices each kind of failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.queue_faults.judge import Verdict, judge
from benchmarks.queue_faults.trials import Records, Run

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["queue_faults", "queue_peers"])
def test_a_benchmark_starts(name: str) -> None:
    argv = [sys.executable, "-m", f"benchmarks.{name}", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    assert f"python -m benchmarks.{name}" in done.stdout


def verdict(*runs: Run, state: str = "complete", value: float = 0.5) -> Verdict:
    trials = [{"id": 1, "state": state, "value": value}]
    return judge(trials, runs, wanted=1, at_once=1)


GOOD = Run(1, "node001", ["0"], 1.0, 2.0, 0.5)


def test_a_good_search_is_good() -> None:
    earlier = Run(1, "master", ["0"], 0.0, 0.9)
    assert verdict(earlier, GOOD).is_good(1)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (verdict(GOOD, state="running"), "lost"),
        (judge([], [GOOD], wanted=1, at_once=1), "lost"),
        (verdict(GOOD, state="broken"), "broken"),
        (verdict(GOOD, value=0.6), "wrong"),
        (verdict(GOOD, Run(1, "master", ["1"], 3.0, 4.0, 0.7)), "ended_twice"),
        (verdict(Run(1, "node001", ["0", "1"], 0.0, 1.1), GOOD), "overlaps"),
        (verdict(Run(1, "master", [], 0.0, 1.1), GOOD), "overlaps"),
    ],
)
def test_each_failure_is_noticed(bad: Verdict, name: str) -> None:
    assert getattr(bad, name) >= 1
    assert not bad.is_good(1)


def test_runs_are_read_from_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_text(
        '{"run": "a", "time": 1.0, "trial": 1, "host": "node001", "gpus": ["0"]}\n'
        '{"run": "b", "time": 1.5, "trial": 2, "host": "node001", "gpus": ["1"]}\n'
        '{"run": "a", "time": 2.0, "value": 0.5}\n{"run": "b", "time": 1.9}\n'
    )
    first, second = Records(path).runs()
    assert first == GOOD
    assert (second.trial, second.seen, second.value) == (2, 1.9, None)
