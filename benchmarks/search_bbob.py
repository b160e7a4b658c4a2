"""The 24 noiseless functions of BBOB in 3 and 5 dimensions, by the package ``ioh``.

Seed s of a search has instance s + 1 of the function: another place of the minimum, and another
rotation. Source: Hansen, Finck, Ros and Auger 2009, INRIA report RR-6829.
"""

from __future__ import annotations

from collections.abc import Callable

from optuna.distributions import FloatDistribution
from search_problems import Params, Problem

_DIMENSIONS, _TRIALS_PER_DIMENSION = (3, 5), 20
_GROUPS = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multi-modal": range(15, 20),
    "weak structure": range(20, 25),
}


def _instance(number: int, dimensions: int, seed: int) -> Callable[[Params], float]:
    """Return the regret of function ``number``, instance ``seed`` + 1."""
    import ioh

    kind = ioh.ProblemClass.BBOB
    problem = ioh.get_problem(number, instance=seed + 1, dimension=dimensions, problem_class=kind)
    minimum = problem.optimum.y

    def function(params: Params) -> float:
        return float(problem([params[f"x{i}"] for i in range(dimensions)]) - minimum)

    return function


def _problem(group: str, number: int, dimensions: int) -> Problem:
    return Problem(
        label=f"f{number}, {dimensions} dimensions",
        space={f"x{i}": FloatDistribution(-5.0, 5.0) for i in range(dimensions)},
        instance=lambda seed: _instance(number, dimensions, seed),
        minimum=0.0,
        trials=_TRIALS_PER_DIMENSION * dimensions,
        exact=False,  # no method is told that there is no noise: users do not say it either
        group=group,
    )


BBOB = {
    f"f{number}-{dimensions}d": _problem(group, number, dimensions)
    for dimensions in _DIMENSIONS
    for group, numbers in _GROUPS.items()
    for number in numbers
}
