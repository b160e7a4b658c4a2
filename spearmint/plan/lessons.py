"""How much less each trial teaches when many run at the same time; no I/O."""

from __future__ import annotations

LOSS = 4.0
"""Measured by ``benchmarks/concurrent_trials.py``; see docs/why/planning.rst."""


def worth(trials: float, at_once: float) -> float:
    """Return what a trial is worth, as a share of a trial that runs alone.

    A proposal does not know the results of the other trials that run. In a longer search this
    matters less: the share is ``1 / (1 + LOSS * (at_once - 1) / trials)``.

    Args:
        trials: All trials of a region at the end.
        at_once: Trials of the region that run at the same time.
    """
    if trials <= 0:
        return 1.0
    others = min(max(at_once, 1.0), trials) - 1.0
    return 1.0 / (1.0 + LOSS * others / trials)
