"""Choose the backend that trains: by name, or the best that works on this machine."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from typing import Any

from pycuda_nn.errors import BackendUnavailable, did_you_mean
from pycuda_nn.network import Network
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


def pick(
    name: str = "auto",
    options: Mapping[str, Any] | None = None,
    network: Network | None = None,
) -> Backend:
    """Return the backend ``name``; ``auto`` gives the first that works on this machine.

    Args:
        name: ``auto`` or a key of ``BACKENDS``.
        options: What the constructor of each named backend takes, such as
            ``{"cuda": CudaOptions()}``; others get nothing.
        network: ``auto`` passes over backends that cannot train it.

    Raises:
        BackendUnavailable: It is unknown, or not usable here.
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
        raise BackendUnavailable(f"backend '{name}' cannot be used here: {missing}")
    return kind(options[name]) if options and name in options else kind()


def _first_usable(network: Network | None) -> str:
    """Return the first backend that works here; warn of a GPU that an earlier one cannot use."""
    for name in BACKENDS:
        kind = load(name)
        reason = kind.missing()
        if reason is None and network is not None:
            reason = kind.uncovered(network)
        if reason is None:
            return name
        if kind.has_device():
            _LOG.warning("training on the CPU, though there is a GPU: %s", reason)
    raise BackendUnavailable("no backend can train here")
