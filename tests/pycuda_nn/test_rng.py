from __future__ import annotations

import numpy as np
import pytest

from pycuda_nn.layers import Dropout, Memory
from pycuda_nn.rng import (
    Purpose,
    Stream,
    drop_bits,
    epoch_order,
    keep_scale,
    uniform,
)

MASK = 2**64 - 1


def philox4x64_10(counter: list[int], key: list[int]) -> list[int]:
    """Salmon et al. 2011, section 3.3, in plain integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [(p1 >> 64) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 64) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B97F4A7C15) & MASK, (k[1] + 0xBB67AE8584CAA73B) & MASK]
    return c


def test_words_are_those_of_the_paper() -> None:
    """All backends draw block 1 + w // 4, word w % 4, counter (block, a, b, 0)."""
    words = Stream(12345, Purpose.DROPOUT).words(11, 7, 2)
    want = [
        word
        for block in (1, 2, 3)
        for word in philox4x64_10([block, 7, 2, 0], [12345, Purpose.DROPOUT])
    ]
    assert words.tolist() == want[:11]


def test_a_place_does_not_depend_on_what_was_drawn_before() -> None:
    stream = Stream(1, Purpose.DROPOUT)
    first = stream.words(10, 3, 0).tolist()
    stream.words(7, 4, 1)
    assert stream.words(10, 3, 0).tolist() == first
    assert stream.words(10, 3, 1).tolist() != first
    assert Stream(2, Purpose.DROPOUT).words(10, 3, 0).tolist() != first
    assert Stream(1, Purpose.ORDER).words(10, 3, 0).tolist() != first


def test_drop_bits_are_the_16_bit_fields_from_the_low_end() -> None:
    stream = Stream(9, Purpose.DROPOUT)
    word = int(stream.words(1, 5, 1)[0])
    want = [(word >> shift) & 0xFFFF for shift in (0, 16, 32, 48)]
    assert drop_bits(stream, 5, 1, 4).tolist() == want
    assert drop_bits(stream, 5, 1, 3).tolist() == want[:3]


def test_order_is_a_permutation_of_seed_and_epoch_only() -> None:
    order = epoch_order(1000, 3, 0)
    assert sorted(order.tolist()) == list(range(1000))
    assert order.tolist() == epoch_order(1000, 3, 0).tolist()
    assert order.tolist() != epoch_order(1000, 3, 1).tolist()
    assert order.tolist() != epoch_order(1000, 4, 0).tolist()


def test_order_never_changes_between_versions() -> None:
    """A checkpoint of an older version must resume exactly: these are the numbers of 0.1."""
    assert epoch_order(8, 0, 0).tolist() == [6, 7, 2, 1, 3, 5, 0, 4]


def test_uniform_fills_its_range() -> None:
    u = uniform(100_000, 0, 0)
    assert u.min() >= -1
    assert u.max() < 1
    assert abs(u.mean()) < 0.01
    assert u.std() == pytest.approx(1 / np.sqrt(3), rel=0.01)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_expectation(dropout: float) -> None:
    n = 400_000
    stream = Stream(0, Purpose.DROPOUT)
    ones, memory = np.ones((1, n), np.float32), Memory(np.float32)
    factor = Dropout(dropout).forward(ones, (), memory, lambda n: drop_bits(stream, 1, 0, n))
    mask = factor > 0
    assert 1 - mask.mean() == pytest.approx(dropout, abs=0.003)
    assert factor.mean() == pytest.approx(1.0, abs=5 * np.sqrt(dropout / (1 - dropout) / n))
    assert set(np.unique(factor)) == {np.float32(0), np.float32(keep_scale(dropout))}
