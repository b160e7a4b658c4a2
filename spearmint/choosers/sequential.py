"""SequentialChooser: a grid that is filled evenly at any time."""

from __future__ import annotations

from spearmint.choosers.base import Chooser


class SequentialChooser(Chooser):
    """Follow a scrambled Sobol sequence: trial ``k`` is point ``k``, whatever the results.

    Unlike a grid it needs no number of points beforehand; every first 2^m points are spread
    evenly over all parameters jointly.
    """
