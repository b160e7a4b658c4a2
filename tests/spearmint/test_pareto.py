from __future__ import annotations

import math

import numpy as np
import pytest

from spearmint.model import Trial, TrialState, pareto_front, with_new
from spearmint.pareto import Losses, dominates, front


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


@pytest.mark.parametrize("count", [2, 3])
def test_a_large_front_is_found_without_comparing_all_pairs(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    compared = 0

    def counted(losses: Losses, others: Losses) -> bool:
        nonlocal compared
        compared += 1
        return dominates(losses, others)

    monkeypatch.setattr("spearmint.pareto.dominates", counted)
    points = [(float(i), *[-float(i)] * (count - 1)) for i in range(3000)]
    assert front(points) == list(range(3000))
    assert compared <= len(points)


@pytest.mark.parametrize("count", [4, 6])
def test_a_front_of_many_objectives_is_found_in_blocks(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    points = [
        tuple(map(float, row)) for row in np.random.default_rng(count).integers(0, 5, (300, count))
    ]
    whole = front(points)
    for size in (1, 7, 299):
        monkeypatch.setattr("spearmint.pareto._BLOCK", size)
        assert front(points) == whole
    assert {points[i] for i in whole} == {
        p for p in points if not any(dominates(q, p) for q in points)
    }


def test_ten_thousand_trials_on_a_front_of_four_objectives_are_few_for_numpy() -> None:
    # 50 million pairs: minutes in Python.
    rows = np.abs(np.random.default_rng(0).standard_normal((10_000, 4))) + 1e-9
    rows = 1.0 - rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert len(front([tuple(map(float, row)) for row in rows])) == len(rows)


def test_a_front_grows_by_one_trial_at_a_time() -> None:
    rng = np.random.default_rng(1)
    values = [*map(float, range(4)), math.inf]
    trials = [
        Trial(
            id=i,
            state=TrialState.COMPLETE,
            params={},
            losses=(rng.choice(values), rng.choice(values)),
            excess={"memory_gb": 1.0} if rng.random() < 0.3 else {},
        )
        for i in range(1, 60)
    ]
    known: list[Trial] = []
    for n, trial in enumerate(trials, 1):
        known = with_new(known, trial)
        assert known == pareto_front(trials[:n])
