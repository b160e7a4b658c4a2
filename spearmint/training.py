"""Learning rates for training code; only the standard library."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["scaled_lr"]

_RULES: dict[str, Callable[[float], float]] = {"linear": lambda ratio: ratio, "sqrt": math.sqrt}


def scaled_lr(
    lr: float,
    batch: int,
    base_batch: int,
    warmup_steps: int = 0,
    step: int = 0,
    *,
    rule: str = "linear",
) -> float:
    """Return the learning rate at ``step`` for a batch larger or smaller than the base batch.

    With k = batch / base_batch, the rate is k lr by the rule ``linear`` and sqrt(k) lr by ``sqrt``.
    If it is above lr, it grows from lr in equal increments over the first ``warmup_steps`` steps.

    Args:
        lr: The learning rate that suits ``base_batch``.
        batch: Examples in a step: the batch of a process times the number of processes.
        base_batch: Examples in a step for which ``lr`` was chosen.
        warmup_steps: Length of the warm-up; 0 for none.
        step: Number of the step, from 0.
        rule: ``linear`` for SGD, or ``sqrt``, which is common for Adam.

    Raises:
        ValueError: A batch is not positive, a number of steps is negative, or the rule is unknown.

    Source: Goyal et al. 2017 (arXiv:1706.02677), sections 2.1 and 2.2; Krizhevsky 2014
    (arXiv:1404.5997), section 5, for the square root.
    """
    if batch < 1 or base_batch < 1:
        raise ValueError(f"invalid batch {batch} of {base_batch}: expected positive numbers")
    if warmup_steps < 0 or step < 0:
        raise ValueError(f"invalid step {step} of {warmup_steps}: expected 0 or more")
    if rule not in _RULES:
        raise ValueError(f"invalid rule {rule!r}: expected {' or '.join(_RULES)}")
    scaled = lr * _RULES[rule](batch / base_batch)
    if step >= warmup_steps or scaled <= lr:
        return scaled
    return lr + (scaled - lr) * step / warmup_steps
