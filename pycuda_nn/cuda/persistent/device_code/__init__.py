"""CUDA source of the persistent kernel, one noun per file; ``persistent.cuh`` explains it."""

from __future__ import annotations

_NAMES = (
    "tensor", "operands", "layout", "words", "activations", "products", "losses", "passes",
    "parameters", "gradients", "worker", "server", "persistent",
)  # fmt: skip
FILES = (
    "cuda/runtime/common.cuh",
    f"cuda/persistent/device_code/{_NAMES[0]}.cuh",
    "cuda/runtime/philox.cuh",
    *(f"cuda/persistent/device_code/{name}.cuh" for name in _NAMES[1:]),
)
"""All source files, in their order: each needs those before it."""
