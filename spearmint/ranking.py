"""Which trial is better."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spearmint.model import Trial


def best_trial(trials: Sequence[Trial], *, maximize: bool) -> Trial | None:
    """Return the complete trial with the best value, the earliest of equals; None if none is."""
    ranked = ranking(trials, maximize=maximize)
    return ranked[0] if ranked else None


def is_better(value: float, than: float, *, maximize: bool) -> bool:
    """Tell whether ``value`` beats ``than``."""
    return value > than if maximize else value < than


def ranking(trials: Sequence[Trial], *, maximize: bool) -> list[Trial]:
    """Return the complete trials, best first; an infinite value of either sign is the worst."""
    sign = -1.0 if maximize else 1.0
    done = [(trial.value, trial) for trial in trials if trial.value is not None]

    def rank(pair: tuple[float, Trial]) -> tuple[float, int]:
        value, trial = pair
        return sign * value if math.isfinite(value) else math.inf, trial.id

    return [trial for _, trial in sorted(done, key=rank)]
