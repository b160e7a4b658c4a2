"""Train and compute on NVIDIA GPUs: runtime, matrix products, training, elementwise kernels."""

from pycuda_nn.cuda.backend import CudaBackend
from pycuda_nn.cuda.options import CudaOptions

__all__ = ["CudaBackend", "CudaOptions"]
