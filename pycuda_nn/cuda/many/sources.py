"""Source files of the kernels of many networks."""

from __future__ import annotations

MANY_FILES = ("cuda/many/net.cuh", "cuda/many/many.cuh")  # after the files of a step
FUSED_FILES = ("cuda/persistent/device_code/tensor.cuh", "cuda/many/fused.cuh")  # after those
HEAD_FILES = ("cuda/step/head.cuh", "cuda/many/head.cuh")  # if the last layer is one kernel
TINY_ENTRY = ("cuda/many/net.cuh", "cuda/many/tiny.cuh")  # of the tiny kernel
COLUMNS_FILES = (  # of the column kernel
    "cuda/runtime/common.cuh",
    "cuda/training/rows.cuh",
    "cuda/runtime/philox.cuh",
    "layers/activation.cuh",
    "layers/dropout.cuh",
    "cuda/step/update.cuh",
    "cuda/persistent/device_code/tensor.cuh",
    "cuda/many/net.cuh",
    "cuda/many/columns_layout.cuh",
    "cuda/many/columns.cuh",
)
