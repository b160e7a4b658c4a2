"""Bayesian optimisation of hyperparameters: the ``spearmint`` command, and ask and tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint._version import __version__
from spearmint.trial.reporting import region, report

if TYPE_CHECKING:
    from spearmint.search import Search

__all__ = ["Search", "__version__", "region", "report"]


def __getattr__(name: str) -> object:
    """Import Search when it is first used: a trial's runner must start without Optuna."""
    if name == "Search":
        from spearmint.search import Search

        return Search
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
