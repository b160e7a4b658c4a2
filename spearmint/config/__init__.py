"""Read and check ``config.pb`` and lists of regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.config.reader import load_experiment
    from spearmint.config.regions import pick_region, read_regions
    from spearmint.config.variables import describe, fits
    from spearmint.config.wrapper import require_wrapper

__all__ = [
    "describe",
    "fits",
    "load_experiment",
    "pick_region",
    "read_regions",
    "require_wrapper",
]

# Reading a file imports protobuf.
__getattr__ = lazy_names(
    __name__,
    {
        "describe": "spearmint.config.variables",
        "fits": "spearmint.config.variables",
        "load_experiment": "spearmint.config.reader",
        "pick_region": "spearmint.config.regions",
        "read_regions": "spearmint.config.regions",
        "require_wrapper": "spearmint.config.wrapper",
    },
)
