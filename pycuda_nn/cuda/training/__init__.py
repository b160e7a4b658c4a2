"""Train a network on one GPU: rows and their order, epochs, evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.training.session import CudaSession

__all__ = ["CudaSession"]


def __getattr__(name: str) -> object:
    """Import CudaSession when it is first used: it needs PyCUDA."""
    if name == "CudaSession":
        from pycuda_nn.cuda.training.session import CudaSession

        return CudaSession
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
