"""Measure what a local trial costs in addition to its own work, and compare with plain Optuna.

    python benchmarks/trial_starts.py [--trials 30] [--repeats 3] [--json FILE]

Each objective runs by ``spearmint --max-concurrent=1`` and in the loop of a process with Optuna,
with the same sampler and number of trials. Objectives without an installed library are skipped.
CPU seconds are those of all processes of a run. A search of PyTorch trials also runs with a pruner.
"""

import argparse
import contextlib
import ctypes
import importlib.util
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: wait for processes that a command leaves behind
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
NETWORK = """import torch
from spearmint import report

EPOCHS = 30


def main(job_id, params):
    torch.manual_seed(0)
    x = torch.randn(1000, 20)
    y = (x[:, :5].prod(dim=1) > 0).long()
    units = 2 ** int(params["depth"][0])
    hidden, out = torch.nn.Linear(20, units), torch.nn.Linear(units, 2)
    model = torch.nn.Sequential(hidden, torch.nn.ReLU(), out)
    optimizer = torch.optim.Adam(model.parameters(), lr=params["rate"][0])
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            value = torch.nn.functional.cross_entropy(model(x), y).item()
        report(epoch, value)
    return value
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
    "torch": ("torch", NETWORK),
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


def used(argv, folder):
    """Return wall and CPU seconds of a command and of all processes that it leaves."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - began
    with contextlib.suppress(ChildProcessError):
        while os.wait():
            pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def searched(code, trials, options=()):
    """Return wall and CPU seconds of a search, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "objective.py").write_text(code)
        (root / "config.pb").write_text(CONFIG)
        search = [sys.executable, "-m", "spearmint", "--method=tpe", "--max-concurrent=1"]
        return used([*search, *options, f"--max-finished-jobs={trials}", "."], root)


def looped(code, trials):
    """Return wall and CPU seconds of the loop with Optuna, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "objective.py").write_text(code)
        (root / "loop.py").write_text(LOOP)
        return used([sys.executable, "loop.py", str(trials)], root)


def measured(code, trials):
    """Return wall and CPU seconds of a search, and of the loop."""
    loop = looped(code, trials)
    return *searched(code, trials), *loop


def medians(runs):
    """Return the median of each column."""
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def one_trial(trials):
    """Print what an empty trial costs: the slope between two numbers of trials."""
    code = OBJECTIVES["empty"][1]
    few, many = (measured(code, count) for count in (trials, 11 * trials))
    ours = [1000 * (most - least) / (10 * trials) for most, least in zip(many, few, strict=True)]
    print(
        f"an empty trial, with its proposal: {ours[0]:.0f} ms wall, {ours[1]:.0f} ms CPU; "
        f"Optuna {ours[2]:.0f} ms, {ours[3]:.0f} ms"
    )


def pruning(trials, repeats):
    """Print the times of a search of PyTorch trials with and without pruning."""
    options = ("--pruner=median", "--pruner-args=n_startup_trials=5")
    runs = {"no pruner": [], "median pruner": []}
    for _ in range(repeats):
        runs["no pruner"].append(searched(NETWORK, trials))
        runs["median pruner"].append(searched(NETWORK, trials, options))
    for name, rows in runs.items():
        print(f"torch, {name}: {medians(rows)[0]:.2f} s, CPU {medians(rows)[1]:.2f} s")


def main():
    """Print a row for each objective: medians of the repeats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    one_trial(options.trials)
    print(f"{options.trials} trials, one at a time; medians of {options.repeats} runs, seconds")
    print(f"{'objective':14}{'spearmint':>11}{'CPU':>8}{'Optuna':>9}{'CPU':>8}")
    rows = {}
    for name, (library, code) in OBJECTIVES.items():
        if importlib.util.find_spec(library) is None:
            print(f"{name:14}{library} is not installed")
            continue
        rows[name] = [measured(code, options.trials) for _ in range(options.repeats)]
        ours, our_cpu, theirs, their_cpu = medians(rows[name])
        print(f"{name:14}{ours:11.2f}{our_cpu:8.2f}{theirs:9.2f}{their_cpu:8.2f}", flush=True)
    if importlib.util.find_spec("torch"):
        pruning(options.trials, options.repeats)
    if options.json:
        options.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
