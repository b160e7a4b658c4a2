"""Learn from earlier searches: match their trials to a search, and add their models to its own.

Formulas: :mod:`spearmint.transfer.ensemble` and :mod:`spearmint.transfer.weights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.transfer.earlier import EarlierSearch, EarlierTrial, for_region
    from spearmint.transfer.ensemble import Ensemble
    from spearmint.transfer.match import Task, Variables, matched
    from spearmint.transfer.neighbours import Neighbours
    from spearmint.transfer.seeds import n_seeds, seed_points

__all__ = [
    "EarlierSearch",
    "EarlierTrial",
    "Ensemble",
    "Neighbours",
    "Task",
    "Variables",
    "for_region",
    "matched",
    "n_seeds",
    "seed_points",
]

# scipy is slow to import; reading trials only needs the classes.
__getattr__ = lazy_names(
    __name__,
    {
        "EarlierSearch": "spearmint.transfer.earlier",
        "EarlierTrial": "spearmint.transfer.earlier",
        "Ensemble": "spearmint.transfer.ensemble",
        "Neighbours": "spearmint.transfer.neighbours",
        "Task": "spearmint.transfer.match",
        "Variables": "spearmint.transfer.match",
        "for_region": "spearmint.transfer.earlier",
        "matched": "spearmint.transfer.match",
        "n_seeds": "spearmint.transfer.seeds",
        "seed_points": "spearmint.transfer.seeds",
    },
)
