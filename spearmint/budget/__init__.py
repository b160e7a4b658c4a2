"""Keep a search within dollars: what its cluster has cost, and what running trials still cost."""

from spearmint.budget.budget import Budget, Running
from spearmint.budget.durations import Durations
from spearmint.budget.meter import BillMeter, Meter, Reading
from spearmint.budget.start import started_at
from spearmint.budget.then import Ending

__all__ = [
    "BillMeter",
    "Budget",
    "Durations",
    "Ending",
    "Meter",
    "Reading",
    "Running",
    "started_at",
]
