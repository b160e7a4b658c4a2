"""Measure how many trials a warm start from the best points of finished regions saves.

    python benchmarks/warm_start.py [--seeds 10] [--json FILE]

The problems of six regions are related: each is Hartmann's function in six dimensions, with its
optimum moved by up to 0.1 in every coordinate and its values scaled. Five regions are searched for
40 trials. Then the sixth is searched cold, and warm from the best points of the five
(--warm-start 3). The table shows the number of trials of the sixth until its value was within 0.5,
0.1 and 0.01 of the minimum.
"""

import argparse
import json
import os
import platform
import statistics
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # must precede the import of numpy

import numpy as np
import optuna
from search_problems import hartmann6

from spearmint.choosers import GPEIOptChooser
from spearmint.controller.warm_start import warm_points
from spearmint.model import Experiment, Kind, Language, Trial, TrialState, Variable

REGIONS, TRIALS, WARM = 5, 40, 3
GOALS = (0.5, 0.1, 0.01)
MINIMUM = -3.322368011415515
EXPERIMENT = Experiment(
    path=Path("config.pb"),
    name="family",
    language=Language.PYTHON,
    variables=tuple(Variable(name=f"x{i}", kind=Kind.FLOAT, low=0.0, high=1.0) for i in range(6)),
)
SPACE = {v.name: optuna.distributions.FloatDistribution(0.0, 1.0) for v in EXPERIMENT.variables}


def family(seed):
    """Return six related problems, each the regret as a function of parameters and its scale."""
    rng = np.random.default_rng(seed)

    def member():
        shift, scale = rng.uniform(-0.1, 0.1, 6), np.exp(rng.normal())

        def regret(params):
            moved = {name: params[name] - by for name, by in zip(SPACE, shift, strict=True)}
            return scale * (hartmann6(moved) - MINIMUM)

        return regret, scale

    return [member() for _ in range(REGIONS + 1)]


def search(problem, seed, first=()):
    """Return the trials of a search, and the best regret after each trial, divided by the scale."""
    function, scale = problem
    study = optuna.create_study(sampler=GPEIOptChooser(seed=seed, noiseless=True))
    for point in first:
        study.enqueue_trial(point)
    values = []
    for _ in range(TRIALS):
        trial = study.ask(SPACE)
        values.append(function(trial.params))
        study.tell(trial, values[-1])
    trials = [
        Trial(
            id=t.number + 1,
            state=TrialState.COMPLETE,
            params={name: (value,) for name, value in t.params.items()},
            value=t.value,
        )
        for t in study.trials
    ]
    return trials, np.minimum.accumulate(values) / scale


def reached(regrets, goal):
    """Return the number of trials until ``regrets`` is below ``goal``; TRIALS + 1 if never."""
    below = np.flatnonzero(regrets < goal)
    return int(below[0]) + 1 if len(below) else TRIALS + 1


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=int, default=10, help="Number of families of problems. Default: 10.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    runs = {"cold": [], "warm": []}
    for seed in range(options.seeds):
        problems = family(seed)
        finished = [search(problem, seed)[0] for problem in problems[:-1]]
        first = warm_points(EXPERIMENT, finished, WARM)
        runs["cold"].append(search(problems[-1], seed)[1])
        runs["warm"].append(search(problems[-1], seed, first)[1])
    figures = {
        how: {str(goal): [reached(run, goal) for run in all_] for goal in GOALS}
        for how, all_ in runs.items()
    }
    print(f"{'start':8}" + "".join(f"{f'within {goal}':>14}" for goal in GOALS))
    for how, by_goal in figures.items():
        medians = [statistics.median(counts) for counts in by_goal.values()]
        print(f"{how:8}" + "".join(f"{median:14g}" for median in medians))
    about = {"python": platform.python_version(), "optuna": optuna.__version__}
    about |= {"numpy": np.__version__, "seeds": options.seeds, "trials": TRIALS, "warm": WARM}
    print(f"median number of trials, {options.seeds} seeds; {TRIALS + 1} means never\n{about}")
    if options.json:
        options.json.write_text(json.dumps({"about": about, "trials": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
