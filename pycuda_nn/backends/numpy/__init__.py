"""Train on the CPU with numpy: the reference that every other backend is tested against."""

from pycuda_nn.backends.numpy.session import NumpyBackend

__all__ = ["NumpyBackend"]
