"""Check the claims about the built-in choosers with many seeds; the tests use one or two seeds.

python benchmarks/chooser_claims.py [--seeds 10] [--claims NAME ...]

Each line has a figure and its limit. The exit status is 1 if a figure reaches its limit.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median

import optuna

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from spearmint.choosers import (
    GPConstrainedEIChooser,
    GPEIChooser,
    GPEIOptChooser,
    GPEIperSecChooser,
    RandomChooser,
    RandomForestEIChooser,
)
from tests.spearmint.choosers.claims import (
    best_on_jumps,
    best_on_wrong_scale,
    feasible_after_first,
    lowest_branin,
    regret_in_a_ball,
    seconds_to_solve,
)

Claim = tuple[Callable[[range], float], float]


def a_constraint_is_learned(seeds: range) -> float:
    """Return the median regret of the constrained chooser, relative to the plain chooser."""
    constrained = [regret_in_a_ball(GPConstrainedEIChooser(seed=seed)) for seed in seeds]
    plain = [regret_in_a_ball(GPEIOptChooser(seed=seed)) for seed in seeds]
    return median(constrained) / median(plain)


def a_small_feasible_region_is_used(seeds: range) -> float:
    """Return 2 % (the feasible share of the square) over the share of feasible trials."""
    found = [feasible_after_first(GPConstrainedEIChooser(seed=seed), 40) for seed in seeds]
    return 0.02 / mean(inside for each in found for inside in each)


def _wrong_scale(kind: type[GPEIOptChooser] | type[GPEIChooser], seeds: range) -> float:
    warped, plain = (
        median(best_on_wrong_scale(kind(seed=s, noiseless=True, input_warp=on)) for s in seeds)
        for on in (True, False)
    )
    return warped / plain


def a_wrong_scale_is_found(seeds: range) -> float:
    """Return the median lowest loss of GPEIOptChooser with the input warp, relative to without."""
    return _wrong_scale(GPEIOptChooser, seeds)


def a_wrong_scale_is_found_by_samples(seeds: range) -> float:
    """Return the same figure for GPEIChooser."""
    return _wrong_scale(GPEIChooser, seeds)


def the_same_value_for_less_time(seeds: range) -> float:
    """Return the median seconds until Branin is solved, relative to expected improvement."""
    per_second = median(seconds_to_solve(GPEIperSecChooser(seed=seed)) for seed in seeds)
    return per_second / median(seconds_to_solve(GPEIOptChooser(seed=seed)) for seed in seeds)


def branin_in_forty_trials(seeds: range) -> float:
    """Return the highest of the best values; the minimum is 0.3979."""
    return max(lowest_branin(GPEIOptChooser(seed=seed), 40) for seed in seeds)


def a_forest_beats_chance_on_jumps(seeds: range) -> float:
    """Return the median best value of a forest, relative to random points."""
    forest = median(best_on_jumps(RandomForestEIChooser(seed=seed)) for seed in seeds)
    return forest / median(best_on_jumps(RandomChooser(seed=seed)) for seed in seeds)


CLAIMS: dict[str, Claim] = {
    function.__name__: (function, limit)
    for function, limit in (
        (a_constraint_is_learned, 0.5),
        (a_small_feasible_region_is_used, 1 / 3),
        (a_wrong_scale_is_found, 0.1),
        (a_wrong_scale_is_found_by_samples, 0.1),
        (the_same_value_for_less_time, 0.5),
        (branin_in_forty_trials, 0.41),
        (a_forest_beats_chance_on_jumps, 1.0),
    )
}


def main() -> int:
    """Print a line for each claim."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    add = parser.add_argument
    add("--seeds", type=int, default=10, metavar="N", help="Searches per claim. Default: 10.")
    add(
        "--claims", nargs="+", choices=CLAIMS, default=list(CLAIMS), help="Check only these claims."
    )
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    failed = False
    for name in arguments.claims:
        figure_of, limit = CLAIMS[name]
        figure = figure_of(range(arguments.seeds))
        kept = math.isfinite(figure) and figure < limit
        failed |= not kept
        print(f"{name:36} {figure:8.4f} < {limit:.4f}  {'yes' if kept else 'NO'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
