"""RandomChooser: uniform points."""

from __future__ import annotations

import numpy as np

from spearmint.choosers.base import Chooser


class RandomChooser(Chooser):
    """Choose uniformly at random, on a logarithmic scale where a parameter has one."""

    def uniform(self, number: int, place: int) -> float:
        """Return an independent uniform number for each trial and parameter."""
        return float(np.random.default_rng([self.seed, number, place]).random())
