"""Backends by name, the best first; one is opened only when asked for."""

from __future__ import annotations

import logging

from pycuda_nn.backends.base import Backend
from pycuda_nn.backends.cuda_backend import CudaBackend
from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.driver import no_gpu
from pycuda_nn.errors import BackendUnavailable, did_you_mean

BACKENDS: dict[str, type[Backend]] = {"cuda": CudaBackend, "numpy": NumpyBackend}


_LOG = logging.getLogger("pycuda_nn")


def pick(name: str = "auto", cuda: CudaOptions | None = None) -> Backend:
    """Return the backend ``name``; ``auto`` gives the first that works on this machine.

    Args:
        name: ``auto`` or a key of ``BACKENDS``.
        cuda: For the CUDA backend; others do not read it.

    Raises:
        BackendUnavailable: It is unknown, or not usable here.
    """
    if name == "auto":
        name = next(key for key, kind in BACKENDS.items() if kind.missing() is None)
        if name == "numpy" and no_gpu() is None:
            _LOG.warning("training on the CPU, though there is a GPU: %s", CudaBackend.missing())
    if name not in BACKENDS:
        raise BackendUnavailable(
            f"unknown backend '{name}'. {did_you_mean(name, ['auto', *BACKENDS])}"
        )
    missing = BACKENDS[name].missing()
    if missing is not None:
        raise BackendUnavailable(f"backend '{name}' cannot be used here: {missing}")
    return CudaBackend(cuda) if name == "cuda" else BACKENDS[name]()
