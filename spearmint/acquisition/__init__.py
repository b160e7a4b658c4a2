"""Propose the next point: log expected improvement under a fitted model, maximised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.acquisition.next_point import first_new, next_point

__all__ = ["first_new", "next_point"]

# scipy takes a while to import; modules here are reached without the others.
__getattr__ = lazy_names(
    __name__,
    {
        "first_new": "spearmint.acquisition.next_point",
        "next_point": "spearmint.acquisition.next_point",
    },
)
