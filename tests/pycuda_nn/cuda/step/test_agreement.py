"""Gradients that differ by rounding agree; others do not."""

from __future__ import annotations

import numpy as np
import pytest

from pycuda_nn.cuda.step.agreement import COARSE, FINE, most_apart

DRAW = np.random.default_rng(0)


def one_by_one(x: np.ndarray, delta: np.ndarray) -> list[np.ndarray]:
    """Return the gradients of weights and bias, summed in float32 in the order of the rows."""
    weights, bias = np.zeros(x.shape[1], np.float32), np.zeros(1, np.float32)
    for row, d in zip(x, delta, strict=True):
        weights += row * d
        bias += d
    return [weights, bias]


def test_a_bias_whose_gradient_cancels_is_no_difference() -> None:
    """All rows in a minibatch, scaled: the errors of a linear network sum to 0 at the start."""
    x, y = (DRAW.normal(size=shape) for shape in ((150, 8), 150))
    x, y = ((each - each.mean(axis=0)) / each.std(axis=0) for each in (x, y))
    delta = ((x @ DRAW.normal(size=8) - y) / len(x)).astype(np.float32)
    x = x.astype(np.float32)
    right, other = one_by_one(x, delta), one_by_one(x[::-1], delta[::-1])
    assert not np.allclose(right[1], other[1], rtol=0.1, atol=0)
    assert most_apart(right, other) < FINE.relative


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5])
def test_a_wrong_gradient_that_is_smaller_than_others_is_found(size: float) -> None:
    right = [np.ones((20, 30), np.float32), np.full(7, size, np.float32)]
    assert most_apart(right, [right[0], 2 * right[1]]) > FINE.relative
    assert most_apart(right, [right[0], 0 * right[1]]) > FINE.relative
    assert most_apart(right, right) == 0.0


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_rounding_to_16_bits_is_no_difference_but_a_missing_part_is(size: float) -> None:
    right = [np.ones((20, 30), np.float32), np.full((9, 7), size, np.float32)]
    noise = 1 + DRAW.normal(scale=0.1, size=(9, 7)).astype(np.float32)
    assert most_apart(right, [right[0], noise * right[1]], COARSE.small) < COARSE.relative
    for wrong in (0.0, 2.0, np.nan):
        other = [right[0], np.float32(wrong) * right[1]]
        assert not most_apart(right, other, COARSE.small) <= COARSE.relative
    small = [right[0], np.full(7, 1e-3, np.float32)]
    assert most_apart(small, [right[0], 2 * small[1]], COARSE.small) < COARSE.relative


def test_zeros_and_numbers_that_are_not_finite() -> None:
    zeros, ones, nan = (np.full(3, value, np.float32) for value in (0, 1, np.nan))
    assert most_apart([zeros], [zeros]) == 0.0
    assert most_apart([zeros], [ones]) == np.inf
    assert most_apart([zeros, ones], [ones, ones]) > FINE.relative
    assert most_apart([ones], [nan]) == np.inf
    assert most_apart([nan, ones], [ones, ones]) == 0.0
    assert most_apart([nan, ones], [ones, zeros]) == 1.0
