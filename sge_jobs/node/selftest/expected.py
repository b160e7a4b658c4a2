"""The kernels of ``kernels.cu`` in Python: the results of a GPU without errors."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction

MASK = 0xFFFFFFFF


def expected_word(index: int, pattern: int, addressed: bool) -> int:
    """Return word ``index`` of the memory under test."""
    mixed = (index & MASK) ^ ((index >> 32) * 0x9E3779B1 & MASK)
    return pattern ^ mixed if addressed else pattern


def float_chain(seed: float, rounds: int, r: float) -> float:
    """Apply x <- r (x - x x) in float32, with one rounding for each of its two operations."""
    x = Fraction(seed)
    factor = Fraction(r)
    for _ in range(rounds):
        x = rounded(factor * rounded(x - x * x))
    return float(x)


def integer_chain(seed: int, rounds: int) -> int:
    """Multiply, add, shift and rotate ``rounds`` times in 32 bits."""
    x = seed
    for _ in range(rounds):
        x = (x * 1664525 + 1013904223) & MASK
        x ^= x >> 15
        x = (x << 7 | x >> 25) & MASK
    return x


def rounded(value: Fraction) -> Fraction:
    """Return the float32 nearest to ``value``, ties to even (IEEE 754); normal numbers only."""
    if value == 0:
        return value
    exponent = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    shift = 23 - exponent
    scaled = value * 2**shift if shift >= 0 else value / 2**-shift
    while abs(scaled) >= 1 << 24:
        scaled /= 2
        shift -= 1
    while abs(scaled) < 1 << 23:
        scaled *= 2
        shift += 1
    return Fraction(round(scaled)) * Fraction(2) ** -shift


def as_float32(value: float) -> float:
    """Return the float32 nearest to ``value``."""
    (found,) = struct.unpack("<f", struct.pack("<f", value))
    return float(found)


def pack_floats(values: Sequence[float]) -> bytes:
    """Return the bytes of float32 numbers in the byte order of the GPU."""
    return struct.pack(f"<{len(values)}f", *values)


def pack_words(values: Sequence[int]) -> bytes:
    """Return the bytes of 32-bit numbers in the byte order of the GPU."""
    return struct.pack(f"<{len(values)}I", *values)
