"""Measure how much less each trial teaches when many run at the same time.

    python benchmarks/concurrent_trials.py [--seeds 8] [--trials 64] [--json FILE]

The default chooser searches two functions with 1, 4, 8, 16 and 32 trials at the same time. Their
durations vary, so that they end one by one; each proposal knows the results of the ended trials.
``n`` trials, ``c`` of them at the same time, are worth ``m`` trials one after another if their mean
logarithm of the regret is that of the sequential search after ``m`` trials. The last columns are
``m / n`` and the loss L of ``m / n = 1 / (1 + L (c - 1) / n)`` (spearmint/plan/lessons.py).
"""

import argparse
import heapq
import json
import os
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # must precede the import of numpy

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from search_problems import branin, hartmann6

from spearmint.choosers import GPEIOptChooser

AT_ONCE = (1, 4, 8, 16, 32)
HARTMANN = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(6)}
BRANIN = {"x0": FloatDistribution(-5.0, 10.0), "x1": FloatDistribution(0.0, 15.0)}
PROBLEMS = {
    "branin": (branin, BRANIN, 0.39788735772973816),
    "hartmann6": (hartmann6, HARTMANN, -3.322368011415515),
}
_LEAST = 1e-6


def search(name, at_once, trials, seed):
    """Return the logarithm of the best regret after each trial that ended."""
    function, space, minimum = PROBLEMS[name]
    random = np.random.default_rng(seed)
    study = optuna.create_study(sampler=GPEIOptChooser(seed=seed, noiseless=True))
    running, now, regrets = [], 0.0, []

    def start():
        end = now + random.lognormal(0.0, 0.4)
        heapq.heappush(running, (end, len(study.trials), study.ask(space)))

    for _ in range(min(at_once, trials)):
        start()
    while running:
        now, _, trial = heapq.heappop(running)
        value = function(trial.params)
        study.tell(trial, value)
        regrets.append(max(value - minimum, _LEAST))
        if len(study.trials) < trials:
            start()
    return np.log10(np.minimum.accumulate(regrets))


def worth(sequential, parallel):
    """Return how many trials one after another reach the last value of ``parallel``."""
    reached = np.flatnonzero(sequential <= parallel[-1])
    if not len(reached):
        return float(len(sequential))
    after = reached[0]
    if after == 0:
        return 1.0
    high, low = sequential[after - 1], sequential[after]
    return float(after + (high - parallel[-1]) / (high - low))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    for name in PROBLEMS:
        means = {}
        for at_once in AT_ONCE:
            runs = [search(name, at_once, options.trials, seed) for seed in range(options.seeds)]
            means[at_once] = np.mean(runs, axis=0)
            for trials in sorted({options.trials // 2, options.trials}):
                if at_once > 1 and at_once * 2 <= trials:
                    same = worth(means[1], means[at_once][:trials])
                    loss = (trials / same - 1) * trials / (at_once - 1)
                    rows.append((name, at_once, trials, same, same / trials, loss))
                    print("{:10} {:3} {:4} {:6.1f} {:5.2f} {:6.2f}".format(*rows[-1]), flush=True)
    print(f"median loss {np.median([row[-1] for row in rows]):.2f}")
    if options.json:
        names = ("problem", "at_once", "trials", "worth", "share", "loss")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        options.json.write_text(json.dumps({"seeds": options.seeds, "rows": found}, indent=1))


if __name__ == "__main__":
    main()
