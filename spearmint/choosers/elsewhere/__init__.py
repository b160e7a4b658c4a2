"""After convergence, share the trials between the known minimum and restarts without memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.choosers.elsewhere.points import Model, points_with_restarts

__all__ = ["Model", "points_with_restarts"]

# scipy is slow to import.
__getattr__ = lazy_names(
    __name__,
    {
        "Model": "spearmint.choosers.elsewhere.points",
        "points_with_restarts": "spearmint.choosers.elsewhere.points",
    },
)
