"""Train in a larger minibatch: the settings that follow from ``scale_batch``.

Source: Goyal et al. 2017 (arXiv:1706.02677), sections 2.1 and 2.2; Krizhevsky 2014
(arXiv:1404.5997), section 5, for the square root.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pycuda_nn.config import TrainConfig
from pycuda_nn.errors import ConfigError

_RULES: dict[str, Callable[[float], float]] = {"linear": float, "sqrt": math.sqrt}
_WARMUP_EPOCHS = 5.0  # of Goyal et al.
_MOST_WARMUP = 0.1  # of all epochs; in short trainings a longer one costs more than it helps


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """What the steps use.

    Attributes:
        batch_size: Rows of a minibatch.
        lr: Learning rate after the warm-up.
        lr_min: Final learning rate of ``cosine``.
        first_lr: Learning rate of the first step of the warm-up; None: it rises from 0.
        warmup_epochs: Length of the warm-up.
    """

    batch_size: int
    lr: float
    lr_min: float
    first_lr: float | None
    warmup_epochs: float


def step_settings(config: TrainConfig) -> StepSettings:
    """Return the settings of the steps, with ``scale_batch`` applied.

    With k = ``scale_batch``, the minibatch is k times as large, and all learning rates after the
    warm-up are k (``linear``) or sqrt(k) times as high. The warm-up starts at the rate ``lr``. It
    takes ``warmup_epochs``, or if they are 0 five epochs, but at most a tenth of all.
    """
    if config.scale_batch == 1:
        return StepSettings(
            batch_size=config.batch_size,
            lr=config.lr,
            lr_min=config.lr_min,
            first_lr=None,
            warmup_epochs=config.warmup_epochs,
        )
    factor = _RULES[config.scale_rule](config.scale_batch)
    return StepSettings(
        batch_size=config.batch_size * config.scale_batch,
        lr=config.lr * factor,
        lr_min=config.lr_min * factor,
        first_lr=config.lr,
        warmup_epochs=config.warmup_epochs or min(_WARMUP_EPOCHS, _MOST_WARMUP * config.epochs),
    )


def summary(config: TrainConfig) -> str | None:
    """Return a line about the settings that ``scale_batch`` changes; None if it changes none."""
    if config.scale_batch == 1:
        return None
    used = step_settings(config)
    line = (
        f"minibatch {config.batch_size:,} -> {used.batch_size:,}, "
        f"lr {config.lr:.4g} -> {used.lr:.4g}, "
        f"warm-up {used.warmup_epochs:g} epochs from {config.lr:.4g}"
    )
    if config.optimizer == "adam" and config.scale_rule == "linear":
        line += " (the linear rule was shown for sgd; for adam, scale_rule = sqrt is usual)"
    return line


def check_rows(config: TrainConfig, rows: int) -> None:
    """Raise ConfigError if the larger minibatch has more than all ``rows``.

    The learning rate would be too high for the minibatch that is left.
    """
    size = step_settings(config).batch_size
    if config.scale_batch == 1 or size <= rows:
        return
    most = rows // config.batch_size
    fix = f"Set scale_batch to at most {most}, or lower batch_size."
    raise ConfigError(
        f"scale_batch = {config.scale_batch}: the minibatch of {size:,} rows is larger than the "
        f"{rows:,} training rows",
        fix if most > 1 else "Remove scale_batch, or lower batch_size.",
    )
