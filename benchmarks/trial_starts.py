"""Measure what a local trial costs in addition to its own work, and compare with plain Optuna.

    python benchmarks/trial_starts.py [--trials 30] [--repeats 3] [--json FILE]

Each objective runs by ``spearmint --max-concurrent=1`` and in the loop of a process with Optuna,
with the same sampler and number of trials. Objectives without an installed library are skipped.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = """language: PYTHON
name: "objective"
variable { name: "rate" type: FLOAT min: 0.01 max: 0.5 log: true }
variable { name: "depth" type: INT min: 2 max: 8 }
"""
TREES = """from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
{imports}

def main(job_id, params):
    x, y = load_breast_cancer(return_X_y=True)
    train, test, expected, answers = train_test_split(x, y, random_state=0)
    model = {model}
    return float(1 - model.fit(train, expected).score(test, answers))
"""
OBJECTIVES = {
    "empty": ("numpy", "def main(job_id, params):\n    return float(params['rate'][0])\n"),
    "scikit-learn": (
        "sklearn",
        TREES.format(
            imports="from sklearn.ensemble import HistGradientBoostingClassifier\n",
            model="HistGradientBoostingClassifier(learning_rate=params['rate'][0], "
            "max_depth=int(params['depth'][0]), max_iter=50)",
        ),
    ),
    "xgboost": (
        "xgboost",
        TREES.format(
            imports="import xgboost\n",
            model="xgboost.XGBClassifier(learning_rate=params['rate'][0], "
            "max_depth=int(params['depth'][0]), n_estimators=200, n_jobs=1)",
        ),
    ),
}
LOOP = """import sys
import numpy as np
import optuna
import objective
optuna.logging.set_verbosity(optuna.logging.WARNING)
def evaluate(trial):
    rate = trial.suggest_float("rate", 0.01, 0.5, log=True)
    depth = trial.suggest_int("depth", 2, 8)
    return objective.main(trial.number, {"rate": np.array([rate]), "depth": np.array([depth])})
study = optuna.create_study(storage="sqlite:///study.db", sampler=optuna.samplers.TPESampler())
study.optimize(evaluate, n_trials=int(sys.argv[1]))
"""


def seconds(argv, folder):
    """Return the wall time of a command."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.monotonic()
    subprocess.run(argv, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def measured(code, trials):
    """Return the times of a search and of the loop, in new folders."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "objective.py").write_text(code)
        (root / "loop.py").write_text(LOOP)
        loop = seconds([sys.executable, "loop.py", str(trials)], root)
        (root / "config.pb").write_text(CONFIG)
        search = [sys.executable, "-m", "spearmint", "--method=tpe", "--max-concurrent=1"]
        return seconds([*search, f"--max-finished-jobs={trials}", "."], root), loop


def main():
    """Print a row for each objective: medians of the repeats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{options.trials} trials, one at a time; medians of {options.repeats} runs, seconds")
    print(f"{'objective':14}{'spearmint':>11}{'Optuna':>9}{'ratio':>8}")
    rows = {}
    for name, (library, code) in OBJECTIVES.items():
        if importlib.util.find_spec(library) is None:
            print(f"{name:14}{library} is not installed")
            continue
        runs = [measured(code, options.trials) for _ in range(options.repeats)]
        ours, theirs = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"{name:14}{ours:11.2f}{theirs:9.2f}{ours / theirs:8.2f}")
        rows[name] = runs
    if options.json:
        options.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
