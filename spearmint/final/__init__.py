"""Train the final model of a search: choose a trial, run one job, and keep the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.final.choice import Choice, choose
    from spearmint.final.training import FinalTraining

__all__ = ["Choice", "FinalTraining", "choose"]

# These modules import Optuna.
__getattr__ = lazy_names(
    __name__,
    {
        "Choice": "spearmint.final.choice",
        "FinalTraining": "spearmint.final.training",
        "choose": "spearmint.final.choice",
    },
)
