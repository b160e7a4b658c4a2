"""The memory of a training does not grow, and all of it is freed."""

from __future__ import annotations

import itertools
import os
import subprocess
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

_MIB, _ROUNDS, _MOST_ROUNDS = 1 << 20, 3, 10


def _open(
    precision: str = "bf16",
    dropout: float = 0.0,
    sizes: tuple[int, ...] = (64, 128, 10),
    **options: object,
):
    from pycuda_nn.cuda.options import CudaOptions

    rng = np.random.default_rng(0)
    x = rng.normal(size=(64 * 500, 64)).astype(np.float32)
    y = rng.integers(0, 10, len(x)).astype(np.int32)
    network = Network.from_sizes(sizes, dropout=dropout)
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
    """Return the used bytes of GPU and host, by this process; of the GPU by all if unknown."""
    import pycuda.driver as cuda

    own = _used_by_this_process(device)
    if own is None:
        with device.active():
            free, total = cuda.mem_get_info()
        own = total - free
    return own, psutil.Process().memory_info().rss


def _used_by_this_process(device: Device) -> int | None:
    """Return its bytes on the GPU, as the driver counts them; None if the driver does not tell."""
    import pycuda.driver as cuda

    with device.active():
        bus = cuda.Device(device.ordinal).pci_bus_id()
    words = ["--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits", f"--id={bus}"]
    done = subprocess.run(["nvidia-smi", *words], capture_output=True, text=True, check=False)
    lines = [line.split(",") for line in done.stdout.splitlines() if "," in line]
    found = [used.strip() for pid, used in lines if pid.strip() == str(os.getpid())]
    return int(found[0]) * _MIB if found and found[0].isdigit() else None


def _least_growth(device: Device, body: Callable[[], object]) -> tuple[int, int]:
    """Return by how many bytes ``body`` raises the use of GPU and host, the least of some rounds.

    A leak is in each round; what another process allocates on the GPU, if the driver does not
    tell them apart, is not.
    """
    grown = []
    for _ in range(_MOST_ROUNDS):
        before = _used(device)
        body()
        grown.append([now - then for now, then in zip(_used(device), before, strict=True)])
        gpu, host = map(min, zip(*grown, strict=True))
        if len(grown) >= _ROUNDS and gpu < _MIB:
            break
    return gpu, host


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


@pytest.mark.parametrize(
    ("precision", "sizes"),
    [("float32", (64, 128, 10)), ("bf16", (64, 128, 128, 128, 128, 128, 10))],
)
def test_a_limit_keeps_rows_on_the_host_with_the_same_result(
    precision: str, sizes: tuple[int, ...]
) -> None:
    """On a path that covers both: not in the persistent kernel."""
    common = {"precision": precision, "sizes": sizes, "dropout": 0.1, "deterministic": True}
    whole = _open(**common)
    order = EpochOrder(n=64 * 500, seed=0, epoch=0)
    want = whole.run_epoch(order, np.full(500, 0.01))
    item = 4 if precision == "float32" else 2
    room = whole._memory.used_bytes - 64 * 500 * 64 * item + 4096
    whole.close()
    small = _open(**common, memory_limit=room)
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

    def refuse(length: int, *more: object, **flags: object) -> object:
        if length < _MIB:
            return pinned(length, *more, **flags)
        raise cuda.MemoryError("cuMemHostAlloc failed: out of memory")

    pinned = cuda.pagelocked_empty
    monkeypatch.setattr(cuda, "pagelocked_empty", refuse)
    monkeypatch.setattr("pycuda_nn.cuda.training.rows._RESERVE_BYTES", 1 << 60)
    with pytest.raises(OutOfHostMemory, match=r"\d MiB .*32,000 train rows"):
        _open()
