"""Compare the search with several objectives with others: hypervolume after a number of trials.

    python benchmarks/search_objectives.py --seeds 5 --methods GPEIOptChooser NSGAIISampler

A hypervolume is relative to the problem's reference point, and divided by the largest one that is
known. ``BoTorch`` is qLogExpectedHypervolumeImprovement with SingleTaskGP. Needs scikit-learn, and
BoTorch for BoTorch.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import NSGAIISampler, RandomSampler, TPESampler
from optuna.study import StudyDirection

from spearmint.choosers import GPEIOptChooser

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """A problem: its space, its function, a reference point, and the number of trials.

    ``largest`` is the hypervolume of the true front, or 1 if it is unknown.
    """

    space: Mapping[str, BaseDistribution]
    function: Callable[[Params], tuple[float, ...]]
    reference: tuple[float, ...]
    largest: float
    trials: int


def zdt(params: Params, *, convex: bool) -> tuple[float, float]:
    """ZDT1 (convex) or ZDT2 in 4 dimensions: Zitzler, Deb and Thiele 2000 (Evol. Comput. 8:173)."""
    first, *others = params.values()
    g = 1.0 + 9.0 * sum(others) / len(others)
    share = first / g
    return first, g * (1.0 - math.sqrt(share)) if convex else g * (1.0 - share**2)


def dtlz2(params: Params) -> tuple[float, float, float]:
    """DTLZ2 with three objectives: Deb et al. 2005, in 5 dimensions."""
    a, b, *others = params.values()
    g = 1.0 + sum((x - 0.5) ** 2 for x in others)
    half = 0.5 * math.pi
    return (
        g * math.cos(a * half) * math.cos(b * half),
        g * math.cos(a * half) * math.sin(b * half),
        g * math.sin(a * half),
    )


def forest(params: Params) -> tuple[float, float]:
    """Error of a random forest on handwritten digits, and the logarithm of its number of nodes."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.5, random_state=0)
    model = RandomForestClassifier(**params, random_state=0).fit(train, train_y)
    nodes = sum(tree.tree_.node_count for tree in model.estimators_)
    return 1.0 - model.score(test, test_y), math.log10(nodes)


def _cube(names: str) -> dict[str, BaseDistribution]:
    return {name: FloatDistribution(0.0, 1.0) for name in names}


PROBLEMS = {
    "zdt1": Problem(
        _cube("abcd"), lambda p: zdt(p, convex=True), (1.1, 1.1), 1.1 * 1.1 - 1.0 / 3.0, 40
    ),
    "zdt2": Problem(
        _cube("abcd"), lambda p: zdt(p, convex=False), (1.1, 1.1), 1.1 * 1.1 - 2.0 / 3.0, 40
    ),
    "dtlz2": Problem(_cube("abcde"), dtlz2, (1.1, 1.1, 1.1), 1.1**3 - math.pi / 6.0, 50),
    "forest": Problem(
        {
            "n_estimators": IntDistribution(2, 200, log=True),
            "max_depth": IntDistribution(2, 20),
            "max_features": FloatDistribution(0.02, 1.0, log=True),
            "min_samples_leaf": IntDistribution(1, 20, log=True),
        },
        forest,
        (0.5, 5.0),
        1.0,
        40,
    ),
}


class OptunaSearch:
    """A sampler of Optuna or a chooser of spearmint."""

    def __init__(self, sampler: optuna.samplers.BaseSampler, problem: Problem) -> None:
        self._space = dict(problem.space)
        directions = [StudyDirection.MINIMIZE] * len(problem.reference)
        self._study = optuna.create_study(sampler=sampler, directions=directions)

    def ask(self) -> Params:
        """Return the next point."""
        self._trial = self._study.ask(self._space)
        return self._trial.params

    def tell(self, values: tuple[float, ...]) -> None:
        """Set the values of the last point."""
        self._study.tell(self._trial, values)


class BoTorchSearch:
    """BoTorch with its defaults; the reference point is that of the problem."""

    def __init__(self, seed: int, problem: Problem) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._problem, self._seed = problem, seed
        self._x: list[list[float]] = []
        self._y: list[list[float]] = []
        self._sobol = torch.quasirandom.SobolEngine(len(problem.space), scramble=True, seed=seed)

    def ask(self) -> Params:
        """Return the next point."""
        if len(self._x) < 2 * (len(self._problem.space) + 1):
            self._x.append(self._sobol.draw(1)[0].tolist())
        else:
            self._x.append(self._best())
        return {
            name: _native(distribution, u)
            for (name, distribution), u in zip(
                self._problem.space.items(), self._x[-1], strict=True
            )
        }

    def tell(self, values: tuple[float, ...]) -> None:
        """Set the values of the last point."""
        self._y.append(list(values))

    def _best(self) -> list[float]:
        import torch
        from botorch.acquisition.multi_objective.logei import (
            qLogExpectedHypervolumeImprovement,
        )
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim import optimize_acqf
        from botorch.utils.multi_objective.box_decompositions import (
            FastNondominatedPartitioning,
        )
        from gpytorch.mlls import SumMarginalLogLikelihood

        x = torch.tensor(self._x, dtype=torch.double)
        y = -torch.tensor(self._y, dtype=torch.double)
        outcomes = [y[:, [k]] for k in range(y.shape[1])]
        models = [SingleTaskGP(x, each, outcome_transform=Standardize(m=1)) for each in outcomes]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        reference = -torch.tensor(self._problem.reference, dtype=torch.double)
        acquisition = qLogExpectedHypervolumeImprovement(
            model, reference, FastNondominatedPartitioning(reference, y)
        )
        bounds = torch.stack([torch.zeros(x.shape[1]), torch.ones(x.shape[1])]).double()
        found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=256)
        return [float(u) for u in found[0]]


def _native(distribution: BaseDistribution, u: float) -> Any:
    low, high = float(distribution.low), float(distribution.high)  # type: ignore[attr-defined]
    if isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log:
        value = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
    else:
        value = low + u * (high - low)
    return round(value) if isinstance(distribution, IntDistribution) else min(value, high)


def _with_reference(seed: int, problem: Problem) -> OptunaSearch:
    """Return our search with the reference point of the problem, which BoTorch has, too."""
    chooser = GPEIOptChooser(seed=seed)
    chooser.references = problem.reference
    return OptunaSearch(chooser, problem)


METHODS: dict[str, Callable[[int, Problem], Any]] = {
    "GPEIOptChooser": lambda s, p: OptunaSearch(GPEIOptChooser(seed=s), p),
    "GPEIOptChooser-reference": _with_reference,
    "NSGAIISampler": lambda s, p: OptunaSearch(NSGAIISampler(seed=s, population_size=10), p),
    "TPESampler": lambda s, p: OptunaSearch(TPESampler(seed=s), p),
    "RandomSampler": lambda s, p: OptunaSearch(RandomSampler(seed=s), p),
    "BoTorch": BoTorchSearch,
}


def search(problem: Problem, method: str, seed: int) -> tuple[float, float]:
    """Return the share of the largest hypervolume, and the seconds of a proposal."""
    searcher, values, seconds = METHODS[method](seed, problem), [], 0.0
    for _ in range(problem.trials):
        start = time.process_time()
        params = searcher.ask()
        seconds += time.process_time() - start
        values.append(problem.function(params))
        searcher.tell(values[-1])
    reference = np.array(problem.reference)
    inside = np.array([each for each in values if np.all(np.array(each) <= reference)])
    volume = compute_hypervolume(inside, reference) if len(inside) else 0.0
    return volume / problem.largest, seconds / problem.trials


def main() -> None:
    """Print a line for each problem and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for name in given.problems:
        for method in given.methods:
            runs = [search(PROBLEMS[name], method, seed) for seed in seeds]
            found = sorted(volume for volume, _ in runs)
            print(
                f"{name} {method}: median {median(found):.4f}, worst {found[0]:.4f}, "
                f"best {found[-1]:.4f} of {len(found)}, "
                f"{np.mean([seconds for _, seconds in runs]):.3f} CPU s a proposal",
                flush=True,
            )


if __name__ == "__main__":
    main()
