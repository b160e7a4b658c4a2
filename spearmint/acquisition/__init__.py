"""Propose the next point: log expected improvement under a fitted model, maximised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.acquisition.log_ei import LogEI
    from spearmint.acquisition.next_point import first_new

__all__ = ["LogEI", "first_new"]

# scipy takes a while to import. The function next_point is named as its module, so it stays there.
__getattr__ = lazy_names(
    __name__,
    {
        "LogEI": "spearmint.acquisition.log_ei",
        "first_new": "spearmint.acquisition.next_point",
    },
)
