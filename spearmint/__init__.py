"""Bayesian optimisation of hyperparameters: the ``spearmint`` command and an ask-and-tell API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint._version import __version__
from spearmint.lazy import lazy_names
from spearmint.trial.reporting import region, report
from spearmint.trial.steps import steps

if TYPE_CHECKING:
    from spearmint.search import Search
    from spearmint.search.guess import guess
    from spearmint.search.when import when
    from spearmint.tasks import executor
    from spearmint.trial.batch.trial import BatchTrial

__all__ = [
    "BatchTrial",
    "Search",
    "__version__",
    "executor",
    "guess",
    "region",
    "report",
    "steps",
    "when",
]

# The runner of a trial must start without Optuna.
__getattr__ = lazy_names(
    __name__,
    {
        "BatchTrial": "spearmint.trial.batch.trial",
        "Search": "spearmint.search",
        "executor": "spearmint.tasks",
        "guess": "spearmint.search.guess",
        "when": "spearmint.search.when",
    },
)
