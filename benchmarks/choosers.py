"""Our choosers beside Optuna's samplers on two test functions, through ask and tell in memory.

    python benchmarks/choosers.py [--seeds 10] [--json FILE]

Regret is the distance of the best observed value from the minimum; the table shows medians over the
seeds, and the median seconds of one suggestion on one BLAS thread.
"""

import argparse
import json
import os
import platform
import statistics
import time
import warnings
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy, for all methods

import numpy as np
import optuna

from spearmint.choosers import make_chooser

METHODS = ("GPEIOptChooser", "SequentialChooser", "RandomChooser", "TPESampler")
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
SCALE = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
CENTRE = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(x):
    """Return Branin on the unit square; minimum 0.397887 (Dixon and Szego 1978)."""
    a, b = 15.0 * x[0] - 5.0, 15.0 * x[1]
    bowl = b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0
    return float(bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) + 10.0)


def hartmann6(x):
    """Return Hartmann's function in six dimensions; minimum -3.32237 (Dixon and Szego 1978)."""
    return float(-ALPHA @ np.exp(-np.sum(SCALE * (x - CENTRE) ** 2, axis=1)))


PROBLEMS = {
    "Branin": (branin, 2, 40, 0.397887357729739),
    "Hartmann6": (hartmann6, 6, 60, -3.322368011415515),
}


def search(method, problem, seed):
    """Return the regret and the median seconds of a suggestion of one search."""
    function, dimensions, trials, minimum = PROBLEMS[problem]
    space = {f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(dimensions)}
    study = optuna.create_study(sampler=make_chooser(method, {}, seed=seed))
    seconds = []
    for _ in range(trials):
        start = time.perf_counter()
        trial = study.ask(space)
        seconds.append(time.perf_counter() - start)
        study.tell(trial, function(np.array([trial.params[name] for name in space])))
    return study.best_value - minimum, statistics.median(seconds)


def main():
    """Print a table of regrets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    rows = []
    print(f"{'problem':12}{'trials':>7}  {'method':20}{'median':>10}{'worst':>10}{'s each':>8}")
    for problem, (_, _, trials, _) in PROBLEMS.items():
        for method in METHODS:
            runs = [search(method, problem, seed) for seed in range(options.seeds)]
            regrets, seconds = zip(*runs, strict=True)
            row = {
                "problem": problem,
                "trials": trials,
                "method": method,
                "median": statistics.median(regrets),
                "worst": max(regrets),
                "seconds": statistics.median(seconds),
                "regrets": regrets,
            }
            rows.append(row)
            print(
                f"{problem:12}{trials:7}  {method:20}{row['median']:10.2g}{row['worst']:10.2g}"
                f"{row['seconds']:8.3f}",
                flush=True,
            )
    about = {"python": platform.python_version(), "optuna": optuna.__version__}
    about |= {"numpy": np.__version__, "cores": os.cpu_count(), "seeds": options.seeds}
    print(about)
    if options.json:
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
