"""Histories of trials to test a chooser with, its proposals, and a check that they are valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
    """Return the objective of any parameters: smooth in the numbers, with an offset for "act"."""
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
    args: Mapping[str, str] | None = None,
) -> optuna.Study:
    """Return a study with random trials, for the chooser ``name`` to continue.

    Args:
        name: Value of ``--method``.
        space: Parameters of all trials.
        finished: Number of complete trials.
        pending: Number of running trials, after the complete trials.
        seed: Seed of the chooser.
        maximize: Whether larger values are better.
        value: Objective as a function of the parameters.
        storage: URL of the study; None: in memory.
        args: Arguments of the chooser, as text.
    """
    sampler = optuna.samplers.RandomSampler(seed=17)
    study = optuna.create_study(
        sampler=sampler, direction="maximize" if maximize else "minimize", storage=storage
    )
    for _ in range(finished):
        trial = study.ask(space)
        # The measured duration would differ between runs.
        trial.set_user_attr("seconds", 2.0 + math.cos(value_of(trial.params)))
        study.tell(trial, value(trial.params))
    for _ in range(pending):
        study.ask(space)
    study.sampler = make_chooser(name, args or {}, seed=seed)
    return study


def proposals(study: optuna.Study, space: Distributions, count: int = 1) -> list[dict[str, Any]]:
    """Return the parameters of ``count`` new trials, all running."""
    return [study.ask(space).params for _ in range(count)]


def assert_legal(params: dict[str, Any], space: Distributions) -> None:
    """Raise AssertionError unless ``params`` are values of ``space`` with the right types."""
    if params.keys() != space.keys():
        raise AssertionError(f"{sorted(params)} instead of {sorted(space)}")
    kinds: dict[type, type] = {IntDistribution: int, FloatDistribution: float}
    for key, distribution in space.items():
        value = params[key]
        inside = distribution._contains(distribution.to_internal_repr(value))
        if not inside or type(value) is not kinds.get(type(distribution), type(value)):
            raise AssertionError(f"{key} = {value!r} is not in {distribution}")
