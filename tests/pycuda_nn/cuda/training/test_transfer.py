"""The numbers of an epoch on their way to a fake GPU and back."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from pycuda_nn.errors import OutOfHostMemory
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, reset


def on_gpu(address: int, n: int, kind: Any) -> Any:
    """Return ``n`` numbers at an address."""
    size = n * np.dtype(kind).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), kind)


def test_an_epoch_gets_its_numbers_and_returns_its_losses() -> None:
    reset(gpus=1)
    with faked_drivers(), MACHINE.on(0):
        import pycuda.driver as cuda

        from pycuda_nn.cuda.runtime.device import Device, Memory
        from pycuda_nn.cuda.training.transfer import EpochTransfer

        memory, stream = Memory(Device(0)), cuda.Stream()
        transfer = EpochTransfer(memory, 5)
        for step, drawn in ((7, (2**63 + 1, 3)), (12, None)):
            rates = np.linspace(0.1, 0.5, 5).astype(np.float32) * step
            transfer.send(step, rates, drawn, stream)
            assert on_gpu(transfer.clock, 2, np.int64).tolist() == [0, step]
            np.testing.assert_array_equal(on_gpu(transfer.rates, 5, np.float32), rates)
            assert on_gpu(transfer.drawn, 2, np.uint64).tolist() == [2**63 + 1, 3]
        on_gpu(transfer.losses, 5, np.float32)[:] = np.arange(5)
        word = memory.allocate(4, "a word")
        on_gpu(word, 1, np.uint32)[:] = 2
        transfer.fetch(4, stream, word=word)
        assert transfer.word() == 2
        losses = transfer.fetched(4)
        transfer.fetch(5, stream)
        np.testing.assert_array_equal(losses, np.arange(4))  # a copy
        np.testing.assert_array_equal(transfer.fetched(5), np.arange(5))
        transfer.close()
        memory.free()
    assert not MACHINE.allocations
    reset()


def test_no_pinned_memory_is_an_error_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    reset(gpus=1)
    with faked_drivers(), MACHINE.on(0):
        import pycuda.driver as cuda

        from pycuda_nn.cuda.runtime.device import Device, Memory
        from pycuda_nn.cuda.training.transfer import EpochTransfer

        def refuse(*_: object) -> None:
            raise cuda.MemoryError("cuMemHostAlloc failed: out of memory")

        monkeypatch.setattr(cuda, "pagelocked_empty", refuse)
        memory = Memory(Device(0))
        with pytest.raises(OutOfHostMemory, match="the numbers of an epoch"):
            EpochTransfer(memory, 5)
        memory.free()
    reset()


def test_an_epoch_is_queued_before_the_losses_of_the_last_are_read() -> None:
    reset(gpus=1)
    with faked_drivers(), MACHINE.on(0):
        import pycuda.driver as cuda

        from pycuda_nn.cuda.runtime.device import Device, Memory
        from pycuda_nn.cuda.training.transfer import EpochTransfer

        memory, stream = Memory(Device(0)), cuda.Stream()
        transfer = EpochTransfer(memory, 3)
        sides = []
        for epoch in range(2):
            transfer.send(3 * epoch, np.full(3, 0.1, np.float32), (1, epoch), stream)
            on_gpu(transfer.losses, 3, np.float32)[:] = epoch + 1
            sides.append(transfer.fetch(3, stream))
        assert [transfer.fetched(3, side).tolist() for side in sides] == [[1] * 3, [2] * 3]
        transfer.close()
        memory.free()
    reset()
