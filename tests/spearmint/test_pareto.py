from __future__ import annotations

import math

import numpy as np
import pytest

from spearmint.pareto import dominates, front


def test_the_front_has_the_first_of_equal_points_and_no_infinite_one() -> None:
    points = [(2.0, 1.0), (1.0, 2.0), (2.0, 2.0), (1.0, 2.0), (-math.inf, 9.0), (0.0, math.nan)]
    assert front(points) == [1, 0]
    assert front([]) == []
    assert front([(math.inf, 0.0)]) == []


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_front_is_what_no_point_dominates(count: int) -> None:
    rng = np.random.default_rng(count)
    points = [tuple(map(float, row)) for row in rng.integers(0, 6, (60, count))]
    expected = {p for p in points if not any(dominates(q, p) for q in points)}
    found = [points[i] for i in front(points)]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [p[0] for p in found] == sorted(p[0] for p in found)
