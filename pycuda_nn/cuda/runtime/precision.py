"""Number types of a step: of the products, and of the stored weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Precision:
    """A precision; sums and stored weights are float32 in all precisions.

    Attributes:
        macro: Macro that selects the type of activations in the kernels.
        item_bytes: Size of an activation.
        keep_scale: Whether gradients of activations are stored times the batch size; in fp16 they
            would otherwise fall below the smallest number.
        split: Whether a weight is stored as a bfloat16 and 16 more bits, which together are the
            float32 weight. An update then moves 12 bytes instead of 14.
    """

    name: str
    macro: str
    item_bytes: int
    keep_scale: bool = False
    split: bool = False

    def rounded(self, values: Array) -> Array:
        """Return float32 ``values`` as the bits of activations for the device."""
        if self.item_bytes == 4:
            return values
        if self.name == "fp16":
            return values.astype(np.float16).view(np.uint16)
        return _high(values).astype(np.uint16)

    def low_bits(self, values: Array) -> Array:
        """Return the remainder of :meth:`rounded` of float32 ``values``, as signed 16 bits."""
        bits = values.view(np.uint32)
        return (bits - (_high(values) << np.uint32(16))).astype(np.uint16)

    def joined(self, high: Array, low: Array) -> Array:
        """Return the float32 values of :meth:`rounded` and :meth:`low_bits`."""
        bits = (high.astype(np.uint32) << np.uint32(16)) + low.view(np.int16).astype(np.int32).view(
            np.uint32
        )
        return bits.view(np.float32)


def _high(values: Array) -> Array:
    """Return the upper halves of float32 values, rounded half up."""
    return (values.view(np.uint32) + np.uint32(0x8000)) >> np.uint32(16)


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(name="float32", macro="T_FLOAT", item_bytes=4),
        Precision(name="tf32", macro="T_FLOAT", item_bytes=4),
        Precision(name="fp16", macro="T_HALF", item_bytes=2, keep_scale=True),
        Precision(name="bf16", macro="T_BFLOAT16", item_bytes=2, split=True),
    )
}
