"""Descriptors with which the copy engine of a Hopper GPU (TMA) reads and writes tiles."""

from __future__ import annotations

import ctypes

from cuda.bindings import driver

from pycuda_nn.cuda.runtime.precision import Precision
from pycuda_nn.errors import DeviceError

BYTES = 128
TILE_WIDTH = 64  # elements in the 128 bytes of a swizzled row


def tensor_map(precision: Precision, address: int, rows: int, width: int, tile_rows: int) -> bytes:
    """Return the descriptor of a row-major matrix of 16-bit numbers, in tiles (tile_rows, 64).

    Elements outside the matrix are read as zeros and are not written.

    Raises:
        DeviceError: The driver rejects the shape or the address.
    """
    wide, short, types = driver.cuuint64_t, driver.cuuint32_t, driver.CUtensorMapDataType
    status, made = driver.cuTensorMapEncodeTiled(
        types.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
        if precision.name == "bf16"
        else types.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        2,
        address,
        [wide(width), wide(rows)],
        [wide(width * precision.item_bytes)],
        [short(TILE_WIDTH), short(tile_rows)],
        [short(1), short(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,  # zeros
    )
    if int(status):
        raise DeviceError(f"tensor map of a matrix ({rows}, {width}): {status}")
    return ctypes.string_at(made.getPtr(), BYTES)
