"""Rows that contain every pair of values."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.pairs import pairs


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3, 4), (3, 3, 3, 3), (1, 5), (2,) * 7])
def test_every_two_values_of_two_columns_meet(sizes: tuple[int, ...]) -> None:
    columns = [
        [f"{name}{n}" for n in range(size)] for name, size in zip("abcdefg", sizes, strict=False)
    ]
    rows = pairs(*columns)
    met = {two for row in rows for two in combinations(row, 2)}
    assert met == {two for a, b in combinations(columns, 2) for two in product(a, b)}
    first, second = sorted(sizes)[-2:]
    assert first * second <= len(rows) <= 2 * first * second
    assert rows == pairs(*columns)
