"""Choosers that fill the space without a model: uniform points and a Sobol sequence."""

from __future__ import annotations

import numpy as np

from spearmint.choosers.base import Chooser


class RandomChooser(Chooser):
    """Choose uniformly at random; on a logarithmic scale for log-scaled parameters."""

    several_objectives = True

    def uniform(self, number: int, place: int) -> float:
        """Return an independent uniform number for each trial and parameter."""
        return float(np.random.default_rng([self.seed, number, place]).random())


class SequentialChooser(Chooser):
    """Use a scrambled Sobol sequence: trial ``k`` is point ``k``, independent of the results.

    Unlike a grid, it does not need the number of points in advance. For every m, the first 2^m
    points are spread evenly over all parameters jointly.
    """

    several_objectives = True
