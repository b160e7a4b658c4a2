"""Compare the other choosers with the default chooser, on problems of the kind that they are for.

    python benchmarks/chooser_variants.py [--seeds 10] [--only cost] [--json FILE]

``cost``: total seconds of all trials until the regret is below a target. The seconds are simulated.
``constraint``: regret of the best feasible point after a fixed number of trials; an infeasible
point returns infinity. ``plain``: regret after a fixed number of trials, for the choosers without a
special kind of problem. The tables have the median and the worst of the seeds.
"""

import argparse
import json
import math
import os
import platform
import statistics
import warnings
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # must precede the import of numpy

import numpy as np
import optuna
import search_problems

from spearmint.choosers import make_chooser

BRANIN_MINIMUM, HARTMANN_MINIMUM = 0.397887357729739, -3.322368011415515


def branin(x):
    """Return Branin's function on the unit square."""
    return search_problems.branin({"x0": 15.0 * x[0] - 5.0, "x1": 15.0 * x[1]})


def hartmann6(x):
    """Return Hartmann's function on the unit cube."""
    return search_problems.hartmann6({f"x{i}": v for i, v in enumerate(x)})


def gramacy(x):
    """Return x1 + x2 if both constraints hold; minimum 0.5998 (Gramacy et al. 2016, eq. 2)."""
    wave = 1.5 - x[0] - 2.0 * x[1] - 0.5 * np.sin(2.0 * np.pi * (x[0] ** 2 - 2.0 * x[1]))
    disk = x[0] ** 2 + x[1] ** 2 - 1.5
    return float(x[0] + x[1]) if wave <= 0.0 and disk <= 0.0 else math.inf


def branin_disk(x):
    """Return Branin within a disk (Gelbart, Snoek and Adams 2014, section 4.1)."""
    a, b = 15.0 * x[0] - 5.0, 15.0 * x[1]
    return branin(x) if (a - 2.5) ** 2 + (b - 7.5) ** 2 <= 50.0 else math.inf


def bowl(x):
    """Return a bowl whose minimum is infeasible; feasible minimum 0.125, on the edge."""
    return float((x[0] - 0.8) ** 2 + (x[1] - 0.7) ** 2) if x[0] + x[1] <= 1.0 else math.inf


def slope(x):
    """Return a plane within a quarter disk; minimum 1, on its edge."""
    return float(2.0 - x[0] - x[1]) if float(x @ x) <= 0.5 else math.inf


def hartmann_ball(x):
    """Return Hartmann's function within the unit ball, 8 % of the cube (Letham et al. 2019)."""
    return hartmann6(x) if float(x @ x) <= 1.0 else math.inf


def stairs(x):
    """Return a step function; minimum 0."""
    return float(np.sum(np.abs(np.floor(12.0 * x) - [2, 9, 5, 7])))


# name: function, seconds of a trial, dimensions, maximum number of trials, minimum, target regret
COST = {
    "Branin, 1 to 100 s": (branin, lambda x: 100.0 ** x[0], 2, 60, BRANIN_MINIMUM, 0.02),
    "Branin, 100 to 1 s": (branin, lambda x: 100.0 ** (1 - x[0]), 2, 60, BRANIN_MINIMUM, 0.02),
    "Hartmann6, 1 to 30 s": (hartmann6, lambda x: 30.0 ** x[5], 6, 80, HARTMANN_MINIMUM, 0.1),
}
CONSTRAINT = {
    "Bowl, half plane": (bowl, 2, 20, 0.125),
    "Slope, quarter disk": (slope, 2, 20, 1.0),
    "Gramacy": (gramacy, 2, 30, 0.599788),
    "Branin, disk": (branin_disk, 2, 30, BRANIN_MINIMUM),
    "Hartmann6, ball": (hartmann_ball, 6, 50, HARTMANN_MINIMUM),
}
PLAIN = {
    "Branin": (branin, 2, 40, BRANIN_MINIMUM),
    "Stairs, 4 dimensions": (stairs, 4, 60, 0.0),
}


def search(method, function, dimensions, trials, seed, seconds=lambda _: 1.0, until=-math.inf):
    """Return the lowest value of a search and the total seconds of its trials."""
    space = {f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(dimensions)}
    study = optuna.create_study(sampler=make_chooser(method, {}, seed=seed))
    best, total = math.inf, 0.0
    for _ in range(trials):
        trial = study.ask(space)
        x = np.array([trial.params[name] for name in space])
        trial.set_user_attr("seconds", float(seconds(x)))
        value = function(x)
        study.tell(trial, value)
        best, total = min(best, value), total + seconds(x)
        if best <= until:
            break
    return best, total


def of_cost(problem, method, seed):
    """Return the seconds until the search reached the target; infinity if it did not."""
    function, seconds, dimensions, trials, minimum, target = COST[problem]
    until = minimum + target
    best, total = search(method, function, dimensions, trials, seed, seconds, until)
    return total if best <= until else math.inf


def of_regret(problem, method, seed):
    """Return the regret after all trials of the problem."""
    function, dimensions, trials, minimum = (CONSTRAINT | PLAIN)[problem]
    return search(method, function, dimensions, trials, seed)[0] - minimum


KINDS = {
    "cost": (COST, of_cost, ("GPEIOptChooser", "GPEIperSecChooser")),
    "constraint": (CONSTRAINT, of_regret, ("GPEIOptChooser", "GPConstrainedEIChooser")),
    "plain": (
        PLAIN,
        of_regret,
        ("GPEIOptChooser", "GPEIChooser", "RandomForestEIChooser", "CMAChooser", "RandomChooser"),
    ),
}


def main():
    """Print a table for each kind of problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--seeds", type=int, default=10, help="Searches of each method and problem. Default: 10.")
    add("--only", choices=list(KINDS), action="append", help="Run only this kind. Repeatable.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    rows = []
    for kind in options.only or KINDS:
        problems, measure, methods = KINDS[kind]
        print(f"{kind:22}{'method':24}{'median':>10}{'worst':>10}")
        for problem in problems:
            for method in methods:
                runs = [measure(problem, method, seed) for seed in range(options.seeds)]
                rows.append({"kind": kind, "problem": problem, "method": method, "runs": runs})
                print(
                    f"{problem:22}{method:24}{statistics.median(runs):10.3g}{max(runs):10.3g}",
                    flush=True,
                )
    about = {"python": platform.python_version(), "optuna": optuna.__version__}
    about |= {"numpy": np.__version__, "cores": os.cpu_count(), "seeds": options.seeds}
    print(about)
    if options.json:
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
