"""Backends by name, the best first; one is opened only when asked for."""

from __future__ import annotations

from pycuda_nn.backends.base import Backend
from pycuda_nn.backends.cuda_backend import CudaBackend
from pycuda_nn.backends.numpy_backend import NumpyBackend
from pycuda_nn.errors import BackendUnavailable, did_you_mean

BACKENDS: dict[str, type[Backend]] = {"cuda": CudaBackend, "numpy": NumpyBackend}


def pick(name: str = "auto") -> Backend:
    """Return the backend ``name``; ``auto`` gives the first that works on this machine.

    Raises:
        BackendUnavailable: It is unknown, or not usable here.
    """
    if name == "auto":
        return next(kind() for kind in BACKENDS.values() if kind.missing() is None)
    if name not in BACKENDS:
        raise BackendUnavailable(
            f"unknown backend '{name}'. {did_you_mean(name, ['auto', *BACKENDS])}"
        )
    missing = BACKENDS[name].missing()
    if missing is not None:
        raise BackendUnavailable(f"backend '{name}' cannot be used here: {missing}")
    return BACKENDS[name]()
