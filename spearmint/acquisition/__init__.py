"""Propose the next point by maximising the log expected improvement under a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.acquisition.log_ei import LogEI
    from spearmint.acquisition.next_point import first_new

__all__ = ["LogEI", "first_new"]

# scipy is slow to import. The function next_point has the name of its module: it is not exported.
__getattr__ = lazy_names(
    __name__,
    {
        "LogEI": "spearmint.acquisition.log_ei",
        "first_new": "spearmint.acquisition.next_point",
    },
)
