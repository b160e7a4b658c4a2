"""Run one search, or one timing, of the search benchmark in this process, and write a record.

search.py calls this script and sets the number of threads:

python benchmarks/search_run.py search RESULTS METHOD PROBLEM SEED
python benchmarks/search_run.py timing RESULTS METHOD N PENDING
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import optuna
from search_methods import METHODS, version_of
from search_problems import HARTMANN6_ARGMIN
from search_suites import PROBLEMS

_TIMED, _TIMING_LIMIT_S = 5, 120.0
_LIBRARIES = (
    "numpy", "scipy", "optuna", "scikit-learn", "cmaes", "ioh", "torch", "botorch", "smac",
)  # fmt: skip


def search(method: str, problem_name: str, seed: int) -> dict[str, Any]:
    """Return the record of a search: regret after each trial, and the time of each suggestion.

    The noise, and the order in which running trials end, depend only on the seed.
    """
    problem = PROBLEMS[problem_name]
    function = problem.of(seed)
    noise = np.random.default_rng([seed, 1]).standard_normal(problem.trials) * problem.noise
    order = np.random.default_rng([seed, 2])
    searcher = METHODS[method](problem.space, seed, problem.exact and problem.noise == 0.0)
    searcher.expect(problem.trials)
    live, values, truths, clock = [], [], [], Clock()
    while len(values) < problem.trials:
        while len(live) < problem.pending and len(live) + len(values) < problem.trials:
            with clock:
                live.append(searcher.ask())
        key, params = live.pop(int(order.integers(len(live))))
        truths.append(function(params))
        values.append(truths[-1] + noise[len(values)])
        searcher.tell(key, values[-1])
    lowest = [int(np.argmin(values[: i + 1])) for i in range(len(values))]
    return {
        "problem": problem_name,
        "seed": seed,
        "trials": problem.trials,
        "regret": [truths[i] - problem.minimum for i in lowest],
        "values": values,
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
    }


def timing(method: str, n: int, pending: int) -> dict[str, Any]:
    """Return the record of suggestions after ``n`` observations of noisy Hartmann6.

    Half of the points are spread over the cube, and half are near its minimum, as in a search. The
    first suggestion, which can import libraries, is not counted.
    """
    problem, rng = PROBLEMS["hartmann6-noisy"], np.random.default_rng(1)
    function, searcher = problem.of(0), METHODS[method](problem.space, 0, False)
    for i in range(n + pending):
        near = np.clip(HARTMANN6_ARGMIN + 0.1 * rng.standard_normal(6), 0.0, 1.0)
        point = rng.random(6) if i % 2 or i >= n else near
        params = {name: float(x) for name, x in zip(problem.space, point, strict=True)}
        value = function(params) + problem.noise * rng.standard_normal()
        searcher.add(params, value if i < n else None)
    clock = Clock()
    while len(clock.seconds) <= _TIMED and sum(clock.seconds) < _TIMING_LIMIT_S:
        with clock:
            key, params = searcher.ask()
        noise = problem.noise * rng.standard_normal()
        searcher.tell(key, function(params) + noise)
    return {
        "n": n,
        "pending": pending,
        "seconds": median(clock.seconds[1:] or clock.seconds),
        "cpu_seconds": median(clock.cpu_seconds[1:] or clock.cpu_seconds),
        "load": os.getloadavg()[0],
    }


class Clock:
    """Collects the wall and CPU seconds of each ``with`` block."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []

    def __enter__(self) -> None:
        self._start = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds.append(time.perf_counter() - self._start[0])
        self.cpu_seconds.append(time.process_time() - self._start[1])


def about() -> dict[str, Any]:
    """Return the versions of libraries and the machine."""
    versions = {"python": platform.python_version()}
    for library in (
        "numpy",
        "scipy",
        "optuna",
        "scikit-learn",
        "cmaes",
        "ioh",
        "torch",
        "botorch",
        "smac",
    ):
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = models[0] if models else platform.processor()
    return {**versions, "cpu": cpu, "machine": platform.machine(), "cores": os.cpu_count()}


def main() -> None:
    """Run the command line's job, and write the record into the folder by a rename."""
    kind, folder, method, *rest = sys.argv[1:]
    known = version_of(method)  # before the run, because sources can change during it
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if kind == "search":
        record = search(method, rest[0], int(rest[1]))
    else:
        record = timing(method, int(rest[0]), int(rest[1]))
    record = {
        "kind": kind,
        "method": method,
        "version": known,
        "about": about(),
        **record,
    }
    path = Path(folder, ".".join([kind, method, *rest, "json"]))
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(record) + "\n")
    part.replace(path)


if __name__ == "__main__":
    main()
