"""Choose the backend that trains: by name, or the best that works on this machine."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from typing import Any

from pycuda_nn.errors import BackendUnavailable, did_you_mean
from pycuda_nn.protocols import Backend

__all__ = ["BACKENDS", "load", "pick"]

# The best first; "module:Class", imported only when asked for.
BACKENDS = {
    "cuda": "pycuda_nn.cuda.backend:CudaBackend",
    "numpy": "pycuda_nn.backends.numpy.session:NumpyBackend",
}

_LOG = logging.getLogger("pycuda_nn")


def load(name: str) -> type[Backend]:
    """Return the class of backend ``name``, a key of ``BACKENDS``."""
    module, _, attribute = BACKENDS[name].partition(":")
    kind: type[Backend] = getattr(importlib.import_module(module), attribute)
    return kind


def pick(name: str = "auto", options: Mapping[str, Any] | None = None) -> Backend:
    """Return the backend ``name``; ``auto`` gives the first that works on this machine.

    Args:
        name: ``auto`` or a key of ``BACKENDS``.
        options: What the constructor of each named backend takes, such as
            ``{"cuda": CudaOptions()}``; others get nothing.

    Raises:
        BackendUnavailable: It is unknown, or not usable here.
    """
    if name == "auto":
        name = _first_usable()
    if name not in BACKENDS:
        raise BackendUnavailable(
            f"unknown backend '{name}'. {did_you_mean(name, ['auto', *BACKENDS])}"
        )
    kind = load(name)
    missing = kind.missing()
    if missing is not None:
        raise BackendUnavailable(f"backend '{name}' cannot be used here: {missing}")
    return kind(options[name]) if options and name in options else kind()


def _first_usable() -> str:
    """Return the first backend that works here; warn of a GPU that an earlier one cannot use."""
    name = next(name for name in BACKENDS if load(name).missing() is None)
    for better in list(BACKENDS)[: list(BACKENDS).index(name)]:
        if load(better).has_device():
            reason = load(better).missing()
            _LOG.warning("training on the CPU, though there is a GPU: %s", reason)
    return name
