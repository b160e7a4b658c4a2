"""Check the arrays and addresses of an elementwise launch, and choose its sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pycuda_nn.errors import ShapeError
from pycuda_nn.expression import Program

ITEM = 4  # bytes of a float32
PACK = 16  # bytes of the widest access

# As in elementwise.cuh: threads per block, packs per thread of `wide`, elements of `single`.
BLOCK, WIDE_PACKS, SINGLES = 128, 2, 4

# One pack per thread is the fastest for data in device memory. Data in the L2 cache arrives so fast
# that starting new blocks costs time: there, as many blocks as run concurrently process all data.
# Measured on an H200: up to 1.2 times as fast at 8 million floats (docs/reference/gpu_kernels).
AT_ONCE = 16  # blocks per multiprocessor
WIDE_SHARE = 0.75  # largest share of the L2 cache


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Properties of the GPU that determine the sweep."""

    multiprocessors: int
    l2_bytes: int


class DeviceArray(Protocol):
    """Required attributes of a device array; PyCUDA's ``GPUArray`` has them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""

    @property
    def flags(self) -> Any:
        """Has ``c_contiguous``."""

    @property
    def ptr(self) -> Any:
        """Address of the first element; not read for an empty array."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One launch over all elements.

    Attributes:
        entry: Name of the kernel in elementwise.cuh.
        blocks: Number of blocks of :data:`BLOCK` threads.
        packs: Number of packs of 16 bytes; of single elements for the kernel ``single``.
        before: Elements before the first pack.
        edges: Elements before the first pack and after the last.
    """

    entry: str
    blocks: int
    packs: int
    before: int = 0
    edges: int = 0


def sweep(chip: Chip, out: int, inputs: Sequence[int], count: int) -> Sweep | None:
    """Return the sweep of ``count`` elements at these addresses; None if ``count`` is 0.

    Raises:
        ShapeError: An address is not a multiple of 4, ``count`` is negative, or an input overlaps
            ``out`` without being the same array.
    """
    if count < 0:
        raise ShapeError(f"elementwise: negative number of elements: {count}")
    if not count:
        return None
    for address in (out, *inputs):
        if address <= 0 or address % ITEM:
            raise ShapeError(f"elementwise: {address:#x} is not an address of a float32")
        if address != out and abs(address - out) < ITEM * count:
            raise ShapeError(
                f"elementwise: an input at {address:#x} overlaps the output at {out:#x}",
                "Pass the same array, or an array that does not overlap it.",
            )
    if any((address - out) % PACK for address in inputs):
        return Sweep(entry="single", blocks=_blocks(count, SINGLES), packs=count)
    before = min(count, -out % PACK // ITEM)
    packs, after = divmod(count - before, PACK // ITEM)
    entry, blocks, at_once = "narrow", _blocks(packs, 1), AT_ONCE * chip.multiprocessors
    touched = ITEM * count * len({out, *inputs})
    if blocks > at_once and touched <= WIDE_SHARE * chip.l2_bytes:
        entry, blocks = "wide", min(_blocks(packs, WIDE_PACKS), at_once)
    return Sweep(entry=entry, blocks=blocks, packs=packs, before=before, edges=before + after)


def addresses(
    program: Program, out: DeviceArray, values: Mapping[str, Any]
) -> tuple[int, list[int], int]:
    """Return the address of ``out``, the addresses of the inputs, and the number of elements.

    Args:
        values: Array of each input and number of each named scalar.

    Raises:
        ShapeError: An operand is missing or unknown, or an array is not float32, not contiguous, or
            not of the shape of ``out``.
    """
    known = [*program.inputs, *(scalar.name for scalar in program.scalars if scalar.name)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ShapeError(
            f"elementwise: unknown operand '{unknown[0]}'",
            f"The expression has {', '.join(known)}.",
        )
    arrays: dict[str, DeviceArray] = {"out": out}
    for name in program.inputs:
        if name not in values:
            raise ShapeError(f"elementwise: missing input '{name}'")
        arrays[f"input '{name}'"] = values[name]
    for name, array in arrays.items():
        _check(name, array, out)
    count = math.prod(out.shape)
    found = [int(array.ptr) if count else 0 for array in arrays.values()]
    return found[0], found[1:], count


def _check(name: str, array: DeviceArray, out: DeviceArray) -> None:
    if not hasattr(type(array), "ptr"):  # the type: an empty GPUArray itself has no ptr
        raise ShapeError(f"elementwise: {name} is {type(array).__name__}, not a device array")
    if array.dtype != np.float32:
        raise ShapeError(f"elementwise: {name} is {array.dtype}, not float32")
    if array.shape != out.shape:
        raise ShapeError(f"elementwise: {name} has shape {array.shape}, out has {out.shape}")
    if not array.flags.c_contiguous:
        raise ShapeError(f"elementwise: {name} is not contiguous", "Pass a contiguous copy.")


def _blocks(items: int, in_flight: int) -> int:
    return max(1, -(-items // (BLOCK * in_flight)))
