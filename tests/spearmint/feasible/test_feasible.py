"""Points that meet linear constraints: drawn, spread, repaired, refined, and shown not to exist."""

from __future__ import annotations

import numpy as np
import pytest

from spearmint.errors import InputError
from spearmint.feasible import conflict, draws, nearest, pull, slide, starts, sweep, within
from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Dimension, Space

UNIT = Dimension()
WHOLE = Dimension(low=0, high=100, step=1)
ENUM = Dimension(n_choices=2)


def space(*rows: Row, dims: tuple[Dimension, ...] = (UNIT, UNIT)) -> Space:
    return Space(dims, linear=rows)


def order(first: int, second: int, gap: float = 0.0) -> Row:
    """Return: dimension ``first`` is at least ``second`` plus a gap."""
    return Row((second, first), (1.0, -1.0), -gap, text=f"{first} >= {second} + {gap}")


def equal(high: float, *at: int) -> Row:
    return Row(at, (1.0,) * len(at), high, is_equal=True, is_whole=True, size=300.0)


def test_draws_are_uniform_in_a_part_that_random_points_do_not_hit() -> None:
    tiny = space(Row((0, 1), (1.0, 1.0), 0.01))
    found = draws(tiny, np.random.default_rng(0), 2000)
    assert tiny.meets(found).all()
    assert np.allclose(found.mean(axis=0), 0.01 / 3, rtol=0.08)
    assert np.allclose(np.cov(found.T)[0, 1], -(0.01**2) / 36, rtol=0.3)


def test_draws_of_a_sum_of_whole_numbers() -> None:
    total = space(equal(100, 0, 1, 2), dims=(WHOLE, WHOLE, WHOLE))
    found = draws(total, np.random.default_rng(0), 300)
    values = np.array([total.values(point) for point in found])
    assert (values.sum(axis=1) == 100).all()
    assert len(np.unique(values, axis=0)) > 150
    assert (values.std(axis=0) > 10).all()


def test_log_scales_and_whole_numbers_are_native_values() -> None:
    rate = Dimension(low=1e-6, high=1, log=True)
    small = space(Row((1, 0), (1.0, -0.001), 0.0), dims=(rate, rate))
    found = draws(small, np.random.default_rng(0), 200)
    assert small.meets(found).all()
    values = np.array([small.values(point) for point in found])
    assert (values[:, 1] <= 0.001 * values[:, 0]).all()
    assert np.ptp(np.log10(values[:, 1])) > 2


def test_a_row_counts_only_in_its_branch() -> None:
    condition = (1, ((0, (1.0,)),))  # dimension 1 is active where the category is 1
    found = Space((ENUM, UNIT, UNIT), (condition,), (Row((1, 2), (1.0, 1.0), 0.001),))
    points = draws(found, np.random.default_rng(0), 300)
    assert found.meets(points).all()
    other = points[points[:, 0] == 0.0]
    assert len(other) > 20
    assert other[:, 2].max() > 0.5
    few = Space((ENUM, UNIT, UNIT), (condition,), (Row((1, 2), (1.0, 1.0), 1e-5),))
    assert set(starts(few)[:, 0]) == {0.0, 1.0}
    mixed = sweep(few, np.repeat(starts(few)[:1], 200, axis=0), np.random.default_rng(0), 9)
    assert few.meets(mixed).all()


def test_points_outside_are_pulled_to_the_limit() -> None:
    half = space(Row((0, 1), (1.0, 1.0), 1.0))
    inner = np.array([[0.1, 0.1], [0.1, 0.1]])
    found = pull(half, np.array([[0.9, 0.9], [0.2, 0.3]]), inner)
    assert np.allclose(found, [[0.5, 0.5], [0.2, 0.3]], atol=1e-6)
    assert half.meets(found).all()
    rng = np.random.default_rng(0)
    assert half.meets(within(half, rng.random((100, 2)), rng)).all()


def test_the_nearest_point_keeps_what_is_fixed() -> None:
    half = space(Row((0, 1), (1.0, 1.0), 1.0))
    found = nearest(half, np.array([0.7, 0.9]), kept=(0,))
    assert found is not None
    assert found[0] == 0.7
    assert found[1] == pytest.approx(0.3, abs=1e-4)
    third = space(equal(100, 0, 1, 2), dims=(WHOLE, WHOLE, WHOLE))
    at = third.coordinates(np.array([[90.0, 10.0, 3.0]]))[0]
    whole = nearest(third, at, kept=(0,))
    assert whole is not None
    assert sum(third.values(whole)) == 100
    assert third.values(whole)[0] == 90
    assert nearest(half, np.array([0.5, 0.5]), kept=()) is not None
    outside = space(Row((0, 1), (1.0, 1.0), 0.5))
    assert nearest(outside, np.array([0.7, 0.1]), kept=(0,)) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (space(order(0, 1, 0.5)), []),
        (space(order(0, 1, 0.5), order(1, 0)), ["0 >= 1 + 0.5", "1 >= 0 + 0.0"]),
        (space(order(0, 1), order(1, 0)), ["0 >= 1 + 0.0", "1 >= 0 + 0.0"]),  # no room
        (
            space(order(0, 1), order(1, 2), order(2, 0, 0.1), order(0, 2), dims=(UNIT,) * 3),
            ["0 >= 1 + 0.0", "1 >= 2 + 0.0", "2 >= 0 + 0.1"],
        ),
        (space(equal(5, 0, 1), dims=(WHOLE, WHOLE)), []),
        (space(Row((0,), (2.0,), 5.0, is_equal=True, is_whole=True), dims=(WHOLE,)), [""]),
        (space(Row((0,), (1.0,), 1e-9)), []),
    ],
)
def test_the_fewest_constraints_that_exclude_each_other(found: Space, expected: list[str]) -> None:
    texts = [row.text for row in conflict(found)]
    if len(expected) == 3:
        assert set(texts) in ({*expected}, {"0 >= 2 + 0.0", "2 >= 0 + 0.1"})
    else:
        assert sorted(texts) == sorted(expected)


def test_no_feasible_point_is_an_error_and_not_a_loop() -> None:
    none = space(order(0, 1, 0.5), order(1, 0))
    assert not len(starts(none))
    with pytest.raises(InputError, match="no point"):
        draws(none, np.random.default_rng(0), 3)


class Away:
    """Minus the squared distance from a target."""

    def __init__(self, *target: float) -> None:
        self._target = np.array(target)

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        away = points - self._target
        return -np.sum(away**2, axis=1), -2.0 * away


def test_a_point_slides_along_a_limit() -> None:
    half = space(Row((0, 1), (1.0, 1.0), 1.0))
    found = slide(Away(1.0, 0.6), half, np.array([0.05, 0.9]), 50)
    assert np.allclose(found, [0.7, 0.3], atol=1e-4)
    assert half.meets(found[None])[0]
    third = space(equal(100, 0, 1, 2), dims=(WHOLE, WHOLE, WHOLE))
    start = starts(third)[0]
    best = third.values(slide(Away(0.5, 0.25, 0.25), third, start, 80))
    assert sum(best) == 100
    assert np.abs(np.array(best) - [50, 25, 25]).max() <= 1
