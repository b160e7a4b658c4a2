"""A session on fake GPUs, whose kernels do nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pycuda_nn.backends.testing import SGD, sample_network, sample_parts, sample_recipe
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, Operation, reset


@pytest.fixture
def ran() -> list[Operation]:
    """What the GPUs of ``opened`` have run so far."""
    return []


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, ran: list[Operation]) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a session; all memory and threads must be gone in the end."""

    def end(operations: list[Operation]) -> None:
        ran.extend(operations)
        for one in operations:
            one.after = frozenset()

    reset(gpus=8)
    MACHINE.run = end
    with faked_drivers():
        from pycuda_nn.cuda.backend import CudaBackend
        from pycuda_nn.cuda.options import CudaOptions
        from pycuda_nn.cuda.parallel import choose
        from pycuda_nn.cuda.parallel.session import DataParallelSession
        from pycuda_nn.cuda.runtime import module

        timed = DataParallelSession.step_times
        monkeypatch.setattr(DataParallelSession, "step_times", lambda self: timed(self, 1e-3))

        monkeypatch.setattr(module, "build", lambda source, arch, options: b"kernels")
        monkeypatch.setattr(choose, "_seconds_alone", lambda *_: 1.0)

        def open_session(
            loss: str = "softmax", *, dropout: float = 0.0, optimizer: Any = SGD, **options: Any
        ) -> Any:
            network = sample_network(loss, "relu", dropout)
            backend = CudaBackend(CudaOptions(deterministic=True, **options))
            recipe, params = sample_recipe(optimizer), network.initial_params(5)
            return backend.open(network, recipe, sample_parts(loss), params)

        yield open_session
    assert not MACHINE.allocations
    assert not MACHINE.stack
    assert not [one for one in threading.enumerate() if one.name.startswith(("GPU", "beats"))]
    reset()
