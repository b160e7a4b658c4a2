"""A learning rate that was declared on a linear scale is found all the same."""

from __future__ import annotations

import math
from statistics import median

import optuna
import pytest

from spearmint.choosers import GPEIChooser, GPEIOptChooser

SPACE = {
    "lr": optuna.distributions.FloatDistribution(1e-6, 1.0),
    "momentum": optuna.distributions.FloatDistribution(0.0, 1.0),
}


def loss(lr: float, momentum: float) -> float:
    """Return the loss: lowest at lr = 3e-3, a three hundredth of its range from an end."""
    return math.log10(lr / 3e-3) ** 2 + (momentum - 0.6) ** 2


def lowest(chooser: optuna.samplers.BaseSampler) -> float:
    study = optuna.create_study(sampler=chooser)
    for _ in range(20):
        trial = study.ask(SPACE)
        study.tell(trial, loss(**trial.params))
    return study.best_value


@pytest.mark.parametrize("chooser", [GPEIOptChooser, GPEIChooser])
def test_an_input_warp_finds_a_wrong_scale(
    chooser: type[GPEIOptChooser] | type[GPEIChooser],
) -> None:
    found = {
        warp: median(
            lowest(chooser(seed=seed, noiseless=True, input_warp=warp)) for seed in range(5)
        )
        for warp in (True, False)
    }
    assert found[True] < 0.1 * found[False], found
