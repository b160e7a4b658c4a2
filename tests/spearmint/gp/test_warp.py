from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spearmint.gp.warp import POWERS, standardise, warped

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=30))
def test_any_finite_values_become_columns_of_finite_size(values: list[float]) -> None:
    columns, added = warped(np.array(values))
    assert np.isfinite(columns).all()
    assert np.isfinite(added).all()
    # Zero columns: all values equal. Otherwise mean 0 and standard deviation 1.
    for column in columns.T:
        assert not column.any() or column.std() == pytest.approx(1.0)


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=30, unique=True))
def test_a_warp_keeps_the_order(values: list[float]) -> None:
    y = np.array(values)
    for column in warped(y)[0].T:
        assert (np.diff(column[np.argsort(y)]) >= 0.0).all()


@given(st.floats(1e-3, 1e3), st.floats(-100.0, 100.0))
def test_shift_and_scale_of_the_objective_do_not_matter(scale: float, shift: float) -> None:
    y = np.random.default_rng(0).exponential(size=20)
    columns, added = warped(y)
    moved, moved_added = warped(scale * y + shift)
    np.testing.assert_allclose(moved, columns, atol=1e-6)
    np.testing.assert_allclose(moved_added, added, atol=1e-4)


def test_log_jacobian_is_that_of_the_whole_transformation() -> None:
    """Of u -> standardised column, up to the constant that the scale of u adds."""
    y = np.sort(np.random.default_rng(1).exponential(size=15))
    _, added = warped(y)
    u = (y - y.min()) / np.median(y - y.min())
    for power, got in zip(POWERS, added, strict=True):
        step = 1e-6

        def transform(v, power=power):
            return np.log1p(v) if power == 0 else ((1 + v) ** power - 1) / power

        slope = (transform(u + step) - transform(u - step)) / (2 * step)
        expected = np.log(slope).sum() - len(y) * np.log(transform(u).std())
        assert got == pytest.approx(expected - 2.0 * (power - 1.0) ** 2, abs=1e-4)


def test_too_little_to_warp() -> None:
    for y in ([1.0, 2.0, 5.0], [1.0, 1.0, 1.0, 9.0], [3.0] * 10):
        columns, added = warped(np.array(y))
        np.testing.assert_array_equal(columns[:, 0], standardise(np.array(y)))
        assert added.tolist() == [0.0]
