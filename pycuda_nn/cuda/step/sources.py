"""Source files of the kernels of the captured step; the loss file follows STEP_FILES."""

from __future__ import annotations

STEP_FILES = (
    "cuda/runtime/common.cuh",
    "cuda/training/rows.cuh",
    "cuda/runtime/philox.cuh",
    "layers/activation.cuh",
    "layers/dropout.cuh",
    "cuda/step/hidden.cuh",
    "layers/loss.cuh",
    "layers/softmax_row.cuh",
    "cuda/step/update.cuh",
)
ORDER_FILES = ("cuda/training/order.cuh",)
ORDER_SIGNATURES = {
    "count_rows": "PPQii",
    "scan_buckets": "Pi",
    "scatter_rows": "PPPQiii",
    "sort_rows": "PPPPQiii",
}
HEAD_FILES = ("cuda/step/head.cuh",)  # if the last layer and its loss are one kernel
DATA_GRAD_FILES = (
    *STEP_FILES[: STEP_FILES.index("cuda/step/hidden.cuh") + 1],
    "cuda/gemm/wgmma.cuh",
    "cuda/gemm/pipeline.cuh",
    "cuda/gemm/queue.cuh",
    "cuda/step/data_grad.cuh",
)
