"""Requests of users about single trials, which the controller, or a command, applies once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names
from spearmint.requests.inbox import Inbox, Request

if TYPE_CHECKING:
    from spearmint.requests.applying import apply, retry
    from spearmint.requests.points import read_points

__all__ = ["Inbox", "Request", "apply", "read_points", "retry"]

# These modules import Optuna.
__getattr__ = lazy_names(
    __name__,
    {
        "apply": "spearmint.requests.applying",
        "read_points": "spearmint.requests.points",
        "retry": "spearmint.requests.applying",
    },
)
