from __future__ import annotations

import numpy as np
import pytest

from spearmint.gp import packed_triangles as packed


def some_matrix(n: int):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n + 2))
    return root @ root.T


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_every_number_has_its_place(n: int) -> None:
    square, order = some_matrix(n), packed.layout(n)
    flat = packed.pack(square)
    assert flat.shape == (n * (n + 1) // 2,)
    np.testing.assert_array_equal(flat, square[order.rows, order.columns])
    np.testing.assert_array_equal(flat[order.diagonal], np.diag(square))
    assert {frozenset(p) for p in zip(order.rows, order.columns, strict=True)} == {
        frozenset((i, j)) for i in range(n) for j in range(n)
    }
    np.testing.assert_array_equal(packed.pack(np.stack((square, -square)))[1], -flat)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_solutions_are_those_of_the_square_matrix(n: int) -> None:
    square, right = some_matrix(n), np.random.default_rng(0).standard_normal((n, 3))
    factor = packed.cholesky(packed.pack(square), n)
    assert factor is not None
    lower = np.linalg.cholesky(square)
    np.testing.assert_allclose(packed.forward(factor, right), np.linalg.solve(lower, right))
    np.testing.assert_allclose(packed.solve(factor, right), np.linalg.solve(square, right))
    diagonal = packed.layout(n).diagonal
    np.testing.assert_allclose(np.log(factor[diagonal]).sum(), np.log(np.diag(lower)).sum())
    found = packed.inverse(factor, n)
    np.testing.assert_allclose(found, packed.pack(np.linalg.inv(square)), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_products_of_columns_are_added(n: int) -> None:
    square, columns = some_matrix(n), np.random.default_rng(0).standard_normal((n, 2))
    found = packed.add_products(packed.pack(square), -0.5, columns)
    np.testing.assert_allclose(packed.unpack(found, n), columns @ columns.T - 0.5 * square)


def test_a_matrix_without_a_factor() -> None:
    assert packed.cholesky(packed.pack(-np.eye(3)), 3) is None
