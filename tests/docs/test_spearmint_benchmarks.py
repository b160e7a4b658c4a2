"""Each benchmark of the search in the documentation starts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.data_pipeline.__main__ import needed, table

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "name",
    [
        "chooser_claims",
        "chooser_variants",
        "early_stopping",
        "search",
        "search_constraints",
        "search_fidelity",
        "search_learn",
        "search_objectives",
        "first_hour",
        "search_overhead",
        "warm_start",
        "concurrent_trials",
        "plan_calibration",
        "recommend",
    ],
)
def test_a_benchmark_starts(name: str) -> None:
    argv = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_a_suite_of_the_search_benchmark_ranks_methods(tmp_path: Path) -> None:
    argv = [sys.executable, str(BENCHMARKS / "search.py"), "--results", str(tmp_path / "records")]
    argv += ["--suite=tasks", "--problems=tree", "--methods", "TPESampler", "random"]
    argv += ["--seeds=2", "--first-seed=5", "--rst", str(tmp_path / "tables.rst")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == [
        f"search.{method}.tree.{seed}.json"
        for method in ("TPESampler", "random")
        for seed in (5, 6)
    ]
    wins, losses = map(
        int, re.search(r"TPESampler : random, tasks: (\d+):(\d+)", done.stdout).groups()
    )
    assert wins + losses <= 2
    assert "Mean rank" in (tmp_path / "tables.rst").read_text()


def test_a_pair_counts_the_searches_that_both_have() -> None:
    code = (
        "from search_tables import pairs; print(*("
        "(p['other'], p['wins'], p['losses'], p['equal'], p['p']) for p in pairs("
        "[{'kind': 'search', 'problem': 'tree', 'seed': s, 'method': m, 'regret': [r]}"
        " for m, rs in (('TPESampler', [1, 1, 1, 1, 3]), ('CMA', [2]), ('random', [2, 2, 2, 2, 3]))"
        " for s, r in enumerate(rs)])), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=BENCHMARKS
    )
    assert done.stdout.splitlines() == ["('CMA', 1, 0, 0, 1.0)", "('random', 4, 0, 1, 0.125)"]


@pytest.mark.skipif(find_spec("ioh") is None, reason="needs the package ioh: pip install ioh")
def test_bbob_has_another_minimum_for_each_seed() -> None:
    code = (
        "from search_bbob import BBOB; p = BBOB['f22-3d'];"
        "print(*(p.of(s)({'x0': 1.0, 'x1': 2.0, 'x2': 3.0}) for s in (0, 0, 1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=BENCHMARKS
    )
    first, again, other = map(float, done.stdout.split())
    assert 0.0 < first == again != other > 0.0


def pipeline(*options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "benchmarks.data_pipeline", *options]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=BENCHMARKS.parent)


def test_the_benchmark_of_data_says_what_it_needs_and_what_its_figures_mean() -> None:
    assert pipeline("--help").stdout.startswith("usage: ")
    base = {"waited": 0.0, "gpu_busy": None}
    rows = [
        {**base, "data": "synthetic", "workers": "-", "rate": 2000.0},
        {**base, "data": "JPEG", "workers": 1, "rate": 100.0, "waited": 0.95, "gpu_busy": 0.05},
        {**base, "data": "JPEG", "workers": 4, "rate": 2000.0},
    ]
    assert [line.split()[-4:] for line in table(rows).splitlines()[1:]] == [
        ["%", "0", "%", "-"],
        ["95", "%", "5", "%"],
        ["%", "0", "%", "-"],
    ]
    (line,) = needed(rows)
    assert "100 images/s" in line
    assert "20 cores" in line


def test_a_network_is_trained_from_files_and_arrays(tmp_path: Path) -> None:
    for package in ("torch", "PIL"):
        pytest.importorskip(package, reason=f"needs {package}")
    done = pipeline(
        *("--images=32", "--size=32", "--batch=16", "--workers", "0", "--seconds=0.1"),
        *("--model=small", "--json", str(tmp_path / "figures.json")),
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [run["workers"] for run in figures["runs"]] == ["-", 0, 0]
    assert all(run["rate"] > 0 and 0 <= run["waited"] <= 1 for run in figures["runs"])


def test_models_of_regions_are_tuned_on_two_simulated_days(tmp_path: Path) -> None:
    argv = [sys.executable, str(BENCHMARKS / "daily.py"), "--regions=3", "--trials=2"]
    argv += ["--json", str(tmp_path / "days.json")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    days = json.loads((tmp_path / "days.json").read_text())
    assert [(day["trials"], day["finals"]) for day in days] == [(6, 3), (6, 3)]
    assert days[0]["promoted"] == 3
    assert days[1]["mean_error"] <= days[0]["mean_error"]
    assert all(1.0 < day["hours"] < 24 for day in days), "the clock is simulated"
