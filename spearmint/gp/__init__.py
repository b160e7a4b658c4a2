"""A small Gaussian process for search. It uses only numpy and scipy, and has no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.gp.posterior import Posterior
    from spearmint.gp.settings import Settings
    from spearmint.gp.space import Dimension, Space

__all__ = ["Dimension", "Posterior", "Settings", "Space"]

# scipy is slow to import; a space only needs numpy.
__getattr__ = lazy_names(
    __name__,
    {
        "Dimension": "spearmint.gp.space",
        "Posterior": "spearmint.gp.posterior",
        "Settings": "spearmint.gp.settings",
        "Space": "spearmint.gp.space",
    },
)
