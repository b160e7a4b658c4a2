"""Train on the CPU with numpy: the reference for the tests of all other backends."""

from pycuda_nn.backends.numpy.session import NumpyBackend

__all__ = ["NumpyBackend"]
