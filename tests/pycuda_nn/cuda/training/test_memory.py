"""The memory of a training does not grow, and all of it is freed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest

from pycuda_nn.cuda.backend import CudaBackend
from pycuda_nn.errors import OutOfHostMemory
from pycuda_nn.network import Network
from pycuda_nn.protocols import SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import EpochOrder

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Device

pytestmark = pytest.mark.gpu

_MIB, _ROUNDS = 1 << 20, 3


def _open(precision: str = "bf16", dropout: float = 0.0, **options: object):
    from pycuda_nn.cuda.options import CudaOptions

    rng = np.random.default_rng(0)
    x = rng.normal(size=(64 * 500, 64)).astype(np.float32)
    y = rng.integers(0, 10, len(x)).astype(np.int32)
    network = Network.from_sizes((64, 128, 10), dropout=dropout)
    recipe = TrainingRecipe(
        optimizer=SgdHyper(momentum=0.9, nesterov=False),
        batch_size=64,
        l2=0.0,
        seed=0,
    )
    backend = CudaBackend(CudaOptions(precision=precision, **options))
    return backend.open(network, recipe, {"train": Split(x=x, y=y)}, network.initial_params(0))


def _epoch(session, epoch: int) -> None:
    session.run_epoch(EpochOrder(n=64 * 500, seed=0, epoch=epoch), np.full(500, 0.01))
    session.evaluate("train")
    session.state()


def _used(device: Device) -> tuple[int, int]:
    """Return the used bytes of the GPU, by all processes, and of the host, by this one."""
    import pycuda.driver as cuda

    with device.active():
        free, total = cuda.mem_get_info()
    return total - free, psutil.Process().memory_info().rss


def _least_growth(device: Device, body: Callable[[], object]) -> tuple[int, int]:
    """Return by how many bytes ``body`` raises the use of GPU and host, the least of some rounds.

    A leak is in each round; what other processes allocate on the GPU is not.
    """
    grown = []
    for _ in range(_ROUNDS):
        before = _used(device)
        body()
        grown.append([now - then for now, then in zip(_used(device), before, strict=True)])
    gpu, host = zip(*grown, strict=True)
    return min(gpu), min(host)


def test_10_000_steps_take_no_more_memory() -> None:
    session = _open()
    epochs = itertools.count()
    for _ in range(2):
        _epoch(session, next(epochs))

    def train() -> None:
        for _ in range(7):
            _epoch(session, next(epochs))

    gpu, host = _least_growth(session._device, train)
    assert gpu < _MIB
    assert host < 4 * _MIB
    session.close()


def test_50_trainings_leave_nothing() -> None:
    def train(count: int = 17) -> Device:
        for _ in range(count):
            session = _open()
            _epoch(session, 0)
            session.close()
        return session._device

    gpu, host = _least_growth(train(2), train)
    assert gpu < _MIB
    assert host < 14 * _MIB


def test_a_limit_keeps_rows_on_the_host_with_the_same_result() -> None:
    whole = _open(dropout=0.1, deterministic=True)
    order = EpochOrder(n=64 * 500, seed=0, epoch=0)
    want = whole.run_epoch(order, np.full(500, 0.01))
    room = whole._memory.used_bytes - 64 * 500 * 64 * 2 + 4096
    whole.close()
    small = _open(dropout=0.1, deterministic=True, memory_limit=room)
    assert not small._rows["train"].resident
    np.testing.assert_array_equal(small.run_epoch(order, np.full(500, 0.01)), want)
    small.close()


def test_a_small_network_learns_the_same_from_rows_on_the_host() -> None:
    whole = _open()
    order = EpochOrder(n=64 * 500, seed=0, epoch=0)
    want = whole.run_epoch(order, np.full(500, 0.01))
    room = whole._memory.used_bytes - 64 * 500 * 64 * 2 + 4096
    whole.close()
    small = _open(memory_limit=room)
    assert not small._rows["train"].resident
    np.testing.assert_allclose(small.run_epoch(order, np.full(500, 0.01)), want, rtol=0.02)
    small.close()


def test_no_room_on_the_host_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    import pycuda.driver as cuda

    def refuse(*_: object, **__: object) -> None:
        raise cuda.MemoryError("cuMemHostAlloc failed: out of memory")

    monkeypatch.setattr(cuda, "pagelocked_empty", refuse)
    monkeypatch.setattr("pycuda_nn.cuda.training.rows._RESERVE_BYTES", 1 << 60)
    with pytest.raises(OutOfHostMemory, match=r"\d MiB .*32,000 train rows"):
        _open()
