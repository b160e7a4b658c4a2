"""Choose a backend: by name, or the best that works on this machine."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from typing import Any

from pycuda_nn.errors import BackendUnavailable, did_you_mean
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend

__all__ = ["BACKENDS", "load", "pick"]

# In order of preference; "module:Class", imported when needed.
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


def pick(
    name: str = "auto",
    options: Mapping[str, Any] | None = None,
    network: Network | None = None,
) -> Backend:
    """Return the backend ``name``; ``auto`` selects the first that works on this machine.

    Args:
        name: ``auto`` or a key of ``BACKENDS``.
        options: Constructor argument of each named backend, such as ``{"cuda": CudaOptions()}``;
            other backends use their defaults.
        network: ``auto`` skips backends that cannot train it.

    Raises:
        BackendUnavailable: The backend is unknown, or does not work on this machine.
    """
    if name == "auto":
        name = _first_usable(network)
    if name not in BACKENDS:
        raise BackendUnavailable(
            f"unknown backend '{name}'. {did_you_mean(name, ['auto', *BACKENDS])}"
        )
    kind = load(name)
    missing = kind.missing()
    if missing is not None:
        raise BackendUnavailable(f"backend '{name}' does not work on this machine: {missing}")
    return kind(options[name]) if options and name in options else kind()


def _first_usable(network: Network | None) -> str:
    """Return the first backend that works; warn if the machine has a GPU that is not used."""
    for name in BACKENDS:
        kind = load(name)
        reason = kind.missing()
        if reason is None and network is not None:
            reason = kind.uncovered(network)
        if reason is None:
            return name
        if kind.has_device():
            _LOG.warning("training on the CPU although this machine has a GPU: %s", reason)
    raise BackendUnavailable("no backend works on this machine")
