"""Compare the search under linear constraints with constraints that it learns, and with others.

    python benchmarks/search_linear.py --seeds 5 --methods GPEIOptChooser learned TPESampler

``learned`` is GPEIOptChooser with the same constraints as values of each trial, which it models.
TPESampler proposes points until one is inside. Prints the regret of the best feasible trial.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import optuna

from spearmint.choosers import make_chooser
from spearmint.choosers.base import Chooser
from spearmint.choosers.feasible_sampler import FeasibleSampler
from spearmint.config.linear import linear_constraints
from spearmint.linear import LinearConstraint
from spearmint.model import Kind, Variable
from spearmint.store.distributions import distributions, tree_of

Params = Mapping[str, float]


@dataclass(frozen=True)
class Problem:
    """A problem: its variables, constraints, function, and known minimum."""

    variables: tuple[Variable, ...]
    require: Sequence[str]
    function: Callable[[Params], float]
    minimum: float
    trials: int = 30


def _reals(high: float, count: int) -> tuple[Variable, ...]:
    names = [f"x{i}" for i in range(count)]
    return tuple(Variable(name=name, kind=Kind.FLOAT, low=0, high=high) for name in names)


def hs24(p: Params) -> float:
    """Hock and Schittkowski 1981, problem 24: the minimum is -1 at (3, sqrt 3)."""
    return ((p["x0"] - 3.0) ** 2 - 9.0) * p["x1"] ** 3 / (27.0 * math.sqrt(3.0))


def hs37(p: Params) -> float:
    """Hock and Schittkowski 1981, problem 37: the minimum is -3456 at (24, 12, 12)."""
    return -p["x0"] * p["x1"] * p["x2"]


def hs76(p: Params) -> float:
    """Hock and Schittkowski 1981, problem 76: the minimum is -4.6818."""
    a, b, c, d = (p[f"x{i}"] for i in range(4))
    square = a * a + 0.5 * b * b + c * c + 0.5 * d * d
    return square - a * c + c * d - a - 3.0 * b + c - d


_A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8]])
_A = np.vstack((_A, [[17, 8, 0.05, 10, 0.1, 14]]))
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(p: Params) -> float:
    """Hartmann's function in 6 dimensions; its minimum on the simplex is at the limit."""
    x = np.array([p[f"x{i}"] for i in range(6)])
    return float(-np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-np.sum(_A * (x - _P) ** 2, axis=1)))


def layers(p: Params) -> float:
    """Whole numbers on a log scale that decrease; the minimum is 0 at (128, 128, 16)."""
    wanted = {"x0": 64.0, "x1": 256.0, "x2": 16.0}
    return sum(math.log2(p[name] / best) ** 2 for name, best in wanted.items()) - 2.0


PROBLEMS = {
    "hs24": Problem(
        _reals(5, 2),
        ["1.7320508075688772 * x1 <= x0", "x0 + 1.7320508075688772 * x1 <= 6"],
        hs24,
        -1.0,
    ),
    "hs37": Problem(_reals(42, 3), ["x0 + 2*x1 + 2*x2 <= 72"], hs37, -3456.0),
    "hs76": Problem(
        _reals(5, 4),
        ["x0 + 2*x1 + x2 + x3 <= 5", "3*x0 + x1 + 2*x2 - x3 <= 4", "x1 + 4*x2 >= 1.5"],
        hs76,
        -4.6818181818,
    ),
    "simplex": Problem(
        _reals(1, 6), ["x0 + x1 + x2 + x3 + x4 + x5 <= 1"], hartmann, -1.515027, trials=40
    ),
    "layers": Problem(
        tuple(Variable(name=f"x{i}", kind=Kind.INT, low=8, high=512, log=True) for i in range(3)),
        ["x0 >= x1 >= x2"],
        layers,
        0.0,
    ),
}
METHODS = ["GPEIOptChooser", "learned", "TPESampler", "RandomChooser"]


def main() -> None:
    """Print a table of medians and worst values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for name in args.problems:
        for method in args.methods:
            runs = [_regret(PROBLEMS[name], method, seed) for seed in range(args.seeds)]
            regrets, seconds = zip(*runs, strict=True)
            text = f"{median(regrets):.2g} ({max(regrets):.2g})"
            print(f"{name:8} {method:15} {text:20} {median(seconds):.2f} s", flush=True)


def _regret(problem: Problem, method: str, seed: int) -> tuple[float, float]:
    """Return the regret of the best feasible trial, and the CPU seconds of a proposal."""
    found = [c for text in problem.require for c in linear_constraints(text, problem.variables)]
    linear = tuple(found)
    learns = method == "learned"
    sampler = make_chooser("GPEIOptChooser" if learns else method, {}, seed=seed)
    tree = None if learns else tree_of(problem.variables, linear)
    if isinstance(sampler, Chooser):
        sampler.tree = tree
    elif tree is not None:
        sampler = FeasibleSampler(sampler, tree)
    study = optuna.create_study(sampler=sampler)
    best, begun = math.inf, time.process_time()
    for _ in range(problem.trials):
        trial = study.ask(distributions(problem.variables) if tree is None else {})
        if tree is not None:
            tree.suggest(trial)
        gaps = [_gap(each, trial.params) for each in linear]
        if learns:
            for k, gap in enumerate(gaps):
                trial.set_constraint(str(k), gap)
        value = problem.function(trial.params)
        if max(gaps) <= 1e-9:
            best = min(best, value)
        study.tell(trial, value)
    return best - problem.minimum, (time.process_time() - begun) / problem.trials


def _gap(constraint: LinearConstraint, values: Params) -> float:
    return sum(w * values[name] for name, w in constraint.weights) - constraint.high


if __name__ == "__main__":
    main()
