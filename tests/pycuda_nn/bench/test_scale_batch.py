"""The benchmark of larger minibatches runs, with so few rows that its figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "scale_batch.py"


def run(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_writes_errors_a_table_and_a_plot_and_reads_its_errors(tmp_path: Path) -> None:
    errors, plot = tmp_path / "errors.json", tmp_path / "plot.svg"
    small = ("--seeds", "2", "--factors", "2", "--rows", "512")
    text = run(*small, "--json", str(errors), "--plot", str(plot))
    report = json.loads(errors.read_text())
    assert list(report["factors"]["2"]) == ["linear", "no warm-up", "sqrt", "same rate"]
    assert [len(found) for found in report["factors"]["2"].values()] == [2] * 4
    assert "<svg" in plot.read_text()
    rows = [line.split()[:3] for line in text.splitlines() if line[:2] in ("1 ", "2 ")]
    assert rows == [["1", "128", "40"], ["2", "256", "20"]]
    assert run("--read", str(errors)) == text
