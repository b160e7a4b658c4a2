"""Generations of a search: archive a finished one, and begin the next with its best points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.generations.turnover import turn_over

__all__ = ["turn_over"]

# The module imports Optuna.
__getattr__ = lazy_names(__name__, {"turn_over": "spearmint.generations.turnover"})
