from __future__ import annotations

import numpy as np
import pytest

from spearmint.gp.triangles import times_lower, times_lower_transposed, times_symmetric


@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (1, 7), (5, 3), (40, 33), (50, 40), (1, 520), (4, 520), (5, 520)]
)
def test_products_are_those_of_square_matrices(m: int, n: int) -> None:
    rng = np.random.default_rng(m * n)
    left, lower = rng.standard_normal((3, m, n)), np.tril(rng.standard_normal((3, n, n)))
    before = left.copy()
    np.testing.assert_allclose(times_lower(left, lower), left @ lower, atol=1e-12)
    transposed = lower.transpose(0, 2, 1)
    np.testing.assert_allclose(times_lower_transposed(left, lower), left @ transposed, atol=1e-12)
    np.testing.assert_array_equal(left, before)


def test_arrays_can_have_any_order_in_memory() -> None:
    rng = np.random.default_rng(0)
    left = np.asfortranarray(rng.standard_normal((2, 4, 6)))[:, ::2]
    lower = np.asfortranarray(np.tril(rng.standard_normal((2, 6, 6))))
    np.testing.assert_allclose(times_lower(left, lower), left @ lower, atol=1e-12)


def test_products_with_a_symmetric_matrix_read_its_lower_triangle() -> None:
    rng = np.random.default_rng(0)
    left, lower = rng.standard_normal((3, 4, 9)), np.tril(rng.standard_normal((3, 9, 9)))
    whole = lower + np.tril(lower, -1).transpose(0, 2, 1)
    above = lower + np.triu(rng.standard_normal((3, 9, 9)), 1)
    np.testing.assert_allclose(times_symmetric(left, above), left @ whole, atol=1e-12)
