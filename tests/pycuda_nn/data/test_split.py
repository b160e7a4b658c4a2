from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pycuda_nn as nn
from pycuda_nn.errors import ConfigError, DataError, EmptyData


def rows(n: int, classes: int) -> nn.Dataset:
    """Return rows whose feature is their number."""
    return nn.Dataset.from_arrays(np.arange(n)[:, None], np.arange(n) ** 2 % (classes + 1) % 3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    n=st.integers(30, 300),
    classes=st.integers(2, 7),
    fractions=st.sampled_from([(0.6, 0.2, 0.2), (0.8, 0.1, 0.1), (0.5, 0.5, 0.0), (0.7, 0.0, 0.3)]),
    seed=st.integers(0, 50),
)
def test_parts_are_disjoint_whole_and_stratified(
    n: int, classes: int, fractions: tuple[float, ...], seed: int
) -> None:
    data = rows(n, classes)
    parts = nn.split(data, fractions, seed)
    together = np.concatenate([part.x[:, 0] for part in parts])
    assert sorted(together.tolist()) == list(range(n))
    assert data.classes is not None
    for part, fraction in zip(parts, fractions, strict=True):
        assert part.classes == data.classes
        np.testing.assert_array_equal(part.y, data.y[part.x[:, 0].astype(int)])
        for number in range(len(data.classes)):
            share = fraction * np.count_nonzero(data.y == number)
            assert abs(np.count_nonzero(part.y == number) - share) <= 2


def test_same_seed_same_parts() -> None:
    data = rows(100, 3)
    first, again, other = (nn.split(data, seed=seed)[0].x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_regression_rows_are_split_too() -> None:
    data = nn.Dataset.from_arrays(np.arange(50)[:, None], np.linspace(0, 1, 50))
    assert [len(part) for part in nn.split(data, (0.5, 0.3, 0.2))] == [25, 15, 10]


@pytest.mark.parametrize(
    "fractions", [(0.6, 0.4), (0.6, 0.3, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), (0.5, 0.5, 0.1)]
)
def test_wrong_fractions(fractions: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=r"fractions [0-9.,-]+:"):
        nn.split(rows(30, 2), fractions)


def test_too_few_rows_for_a_part() -> None:
    with pytest.raises(DataError, match=r": 30 rows .*test part .*\b0\.001"):
        nn.split(rows(30, 2), (0.5, 0.499, 0.001))


def test_concat_is_the_inverse_and_checks() -> None:
    data = rows(60, 3)
    train, valid, test = nn.split(data)
    both = nn.concat(train, valid)
    assert len(both) == len(train) + len(valid)
    np.testing.assert_array_equal(both.x[len(train) :], valid.x)
    np.testing.assert_array_equal(both.y[: len(train)], train.y)
    with pytest.raises(DataError, match=r"concat: .*train part .*data .*columns"):
        nn.concat(train, nn.Dataset.from_arrays(np.ones((4, 2)), np.arange(4) % 2))
    with pytest.raises(EmptyData):
        nn.concat()
    assert len(test) == 12
