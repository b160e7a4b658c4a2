"""Compare the trial that ``spearmint best`` recommends with the luckiest one, by their true values.

    python benchmarks/recommend.py [--seeds 5] [--first-seed 300] [--only noisy]

Noisy: three functions with Gaussian noise, and two real tasks where each trial has other folds.
Rough: real tasks where all trials of a search have the same folds; the true value is the mean over
other folds. Each line has a search; the last lines count which of the two trials is better.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter
from collections.abc import Callable

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import numpy as np
import optuna
from search_problems import Params
from search_suites import PROBLEMS

from spearmint.choosers import GPEIOptChooser
from spearmint.choosers.recommendation import recommend

# Problem, standard deviation of the noise (None: other folds), trials.
NOISY = (
    ("branin", 2.0, 40),
    ("hartmann6", 0.1, 50),
    ("levy4", 3.0, 50),
    ("tree", None, 50),
    ("sgd", None, 50),
)
ROUGH = ("tree", "ridge", "svr", "neighbours", "sgd", "svm")
_FOLDS = 20  # splits for a true value
Function = Callable[[Params], float]


def noisy(name: str, sd: float | None, seed: int) -> tuple[Function, Function]:
    """Return the function of a trial, and the function of its true value."""
    problem, rng = PROBLEMS[name], np.random.default_rng(seed)
    if sd is None:
        return lambda params: problem.of(int(rng.integers(10**6)))(params), over_folds(name)
    function = problem.of(seed)
    return lambda params: function(params) + sd * rng.standard_normal(), function


def over_folds(name: str) -> Function:
    """Return the mean of a task over folds that no search has."""
    problem = PROBLEMS[name]
    seeds = range(10**6, 10**6 + _FOLDS)
    return lambda params: float(np.mean([problem.of(seed)(params) for seed in seeds]))


def compare(name: str, function: Function, truth: Function, trials: int, seed: int) -> str:
    """Search, print the two true values, and return which trial is better."""
    study = optuna.create_study(sampler=GPEIOptChooser(seed=seed))
    for _ in range(trials):
        trial = study.ask(PROBLEMS[name].space)
        study.tell(trial.number, function(trial.params))
    found = recommend(study)
    if found is None:
        print(f"{name:12}{seed:5}  no noise found", flush=True)
        return "no noise found"
    first, other = (truth(study.trials[each.number].params) for each in found)
    result = "equal" if first == other else "better" if first < other else "worse"
    print(
        f"{name:12}{seed:5}  recommended {first:.4g}, luckiest {other:.4g}: {result};"
        f" expected {found[0].expected:.4g} ± {found[0].sd:.2g}, noise {found[0].noise_sd:.2g}",
        flush=True,
    )
    return result


def main() -> None:
    """Run the searches and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="Searches of each. Default: 5.")
    parser.add_argument("--first-seed", type=int, default=300, help="Default: 300.")
    parser.add_argument("--only", choices=("noisy", "rough"), help="Default: both.")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    counts = {"noisy": Counter[str](), "rough": Counter[str]()}
    for name, sd, trials in NOISY if chosen.only != "rough" else ():
        counts["noisy"].update(compare(name, *noisy(name, sd, s), trials, s) for s in seeds)
    for name in ROUGH if chosen.only != "noisy" else ():
        truth = over_folds(name)
        counts["rough"].update(
            compare(name, PROBLEMS[name].of(s), truth, PROBLEMS[name].trials, s) for s in seeds
        )
    for kind, of in counts.items():
        if of:
            print(
                f"{kind}: the recommended trial is " + ", ".join(f"{k} {n}" for k, n in of.items())
            )


if __name__ == "__main__":
    main()
