"""The learning rate of each step: a function of only the settings and the step."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from pycuda_nn.config import TrainConfig
from pycuda_nn.training.large_batch import StepSettings, step_settings

Rates = npt.NDArray[np.float64]


def learning_rates(config: TrainConfig, epoch: int, steps: int) -> Rates:
    """Return the learning rate of each of the ``steps`` steps of ``epoch`` (from 0).

    Warm-up increases the rate by a constant amount per step up to its peak; the schedule then
    covers the rest of the training.

    Source: Goyal et al. 2017 (arXiv:1706.02677), section 2.2 (gradual warm-up).
    """
    used = step_settings(config)
    step = epoch * steps + np.arange(steps, dtype=np.float64)
    warm = round(used.warmup_epochs * steps)
    schedule = SCHEDULES[config.schedule]
    peak = config
    if (used.lr, used.lr_min) != (config.lr, config.lr_min):  # to replace checks all settings
        peak = dataclasses.replace(config, lr=used.lr, lr_min=used.lr_min)
    after = schedule(peak, step - warm, steps, config.epochs * steps - warm)
    return np.where(step < warm, _rise(used, step, max(warm, 1)), after)


def _rise(used: StepSettings, step: Rates, warm: int) -> Rates:
    """Return the rates of a warm-up: from 0, or from the rate of the smaller minibatch."""
    if used.first_lr is None:
        return used.lr * (step + 1.0) / warm
    return used.first_lr + (used.lr - used.first_lr) * step / warm


def _constant(config: TrainConfig, step: Rates, steps: int, total: int) -> Rates:
    return np.full_like(step, config.lr)


def _step(config: TrainConfig, step: Rates, steps: int, total: int) -> Rates:
    """Multiply by ``step_factor`` after every ``step_epochs`` epochs since the warm-up."""
    stairs = np.floor(np.maximum(step, 0.0) / (config.step_epochs * steps))
    rates: Rates = config.lr * config.step_factor**stairs
    return rates


def _cosine(config: TrainConfig, step: Rates, steps: int, total: int) -> Rates:
    """Half a cosine from ``lr`` to ``lr_min``.

    Source: Loshchilov and Hutter 2017 (arXiv:1608.03983), eq. 5, one period, no restart.
    """
    part = np.clip(step / max(total, 1), 0.0, 1.0)
    rates: Rates = config.lr_min + 0.5 * (config.lr - config.lr_min) * (1.0 + np.cos(np.pi * part))
    return rates


SCHEDULES = {"constant": _constant, "step": _step, "cosine": _cosine}
