"""What tests of a chooser need: histories of trials, proposals, and whether these are legal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spearmint.choosers.registry import make_chooser

Distributions = dict[str, BaseDistribution]

MIXED: Distributions = {
    "lr": FloatDistribution(1e-5, 1.0, log=True),
    "dropout": FloatDistribution(0.0, 0.9),
    "ratio": FloatDistribution(0.1, 0.9, step=0.2),
    "depth": IntDistribution(1, 8),
    "width": IntDistribution(16, 1024, log=True),
    "batch": IntDistribution(32, 512, step=32),
    "act": CategoricalDistribution(["relu", "tanh", None]),
    "only": IntDistribution(3, 3),
}
FLOATS: Distributions = {f"x{i}": FloatDistribution(-2.0, 2.0) for i in range(3)}


def value_of(params: dict[str, Any]) -> float:
    """Return a value that any parameters have: smooth in the numbers, an offset for the rest."""
    numbers = [float(v) for v in params.values() if isinstance(v, int | float)]
    return math.fsum(math.sin(v) + 0.01 * abs(v) for v in numbers) + len(str(params.get("act")))


def study_with(
    name: str,
    space: Distributions,
    *,
    finished: int = 12,
    pending: int = 0,
    seed: int = 0,
    maximize: bool = False,
    value: Callable[[dict[str, Any]], float] = value_of,
    storage: str | None = None,
) -> optuna.Study:
    """Return a study whose first trials were chosen at random."""
    sampler = optuna.samplers.RandomSampler(seed=17)
    study = optuna.create_study(
        sampler=sampler, direction="maximize" if maximize else "minimize", storage=storage
    )
    for _ in range(finished):
        trial = study.ask(space)
        # The clock's duration would differ from run to run.
        trial.set_user_attr("seconds", 2.0 + math.cos(value_of(trial.params)))
        study.tell(trial, value(trial.params))
    for _ in range(pending):
        study.ask(space)
    study.sampler = make_chooser(name, {}, seed=seed)
    return study


def proposals(study: optuna.Study, space: Distributions, count: int = 1) -> list[dict[str, Any]]:
    """Return the parameters of ``count`` new trials, all running."""
    return [study.ask(space).params for _ in range(count)]


def assert_legal(params: dict[str, Any], space: Distributions) -> None:
    """Raise AssertionError unless ``params`` are values of ``space``, of the right types."""
    if params.keys() != space.keys():
        raise AssertionError(f"{sorted(params)} instead of {sorted(space)}")
    kinds: dict[type, type] = {IntDistribution: int, FloatDistribution: float}
    for key, distribution in space.items():
        value = params[key]
        inside = distribution._contains(distribution.to_internal_repr(value))
        if not inside or type(value) is not kinds.get(type(distribution), type(value)):
            raise AssertionError(f"{key} = {value!r} is not in {distribution}")
