"""Compare the database of a search with its queue, folders and files, and repair differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.checking.check import check_search
    from spearmint.checking.problem import Problem

__all__ = ["Problem", "check_search"]

# These modules import Optuna.
__getattr__ = lazy_names(
    __name__,
    {
        "Problem": "spearmint.checking.problem",
        "check_search": "spearmint.checking.check",
    },
)
