"""Each benchmark of the search in the documentation starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "name",
    [
        "chooser_claims",
        "chooser_variants",
        "early_stopping",
        "search",
        "first_hour",
        "search_overhead",
        "warm_start",
    ],
)
def test_a_benchmark_starts(name: str) -> None:
    argv = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
