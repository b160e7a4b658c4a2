"""The files of the captured step's kernels; that of the loss stands behind STEP_FILES."""

from __future__ import annotations

STEP_FILES = (
    "cuda/runtime/common.cuh",
    "cuda/training/rows.cuh",
    "cuda/runtime/philox.cuh",
    "layers/activation.cuh",
    "layers/dropout.cuh",
    "cuda/training/hidden.cuh",
    "layers/loss.cuh",
    "cuda/training/update.cuh",
)
ORDER_FILES = ("cuda/training/order.cuh",)
HEAD_FILES = ("cuda/training/head.cuh",)  # where the last layer and its loss are one kernel
