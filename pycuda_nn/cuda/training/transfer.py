"""What an epoch gets from the host and returns to it: one copy each way, which nobody waits for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.training.order import DRAWN_BYTES
from pycuda_nn.errors import OutOfHostMemory

Array = npt.NDArray[Any]

_CLOCK_BYTES, _RATES = 16, 256  # the rates follow clock and (seed, epoch), aligned


class EpochTransfer:
    """Memory of both sides for the numbers of an epoch, pinned on the host.

    Attributes:
        clock, drawn, rates, losses: Device addresses: the clock, seed and epoch of the order, and
            float32 numbers of each step.
    """

    def __init__(self, memory: Memory, steps: int) -> None:
        """Allocate both; a context must be active.

        Raises:
            OutOfDeviceMemory, OutOfHostMemory: There is not enough memory.
        """
        size = _RATES + 4 * steps
        self.clock = memory.allocate(size, "the learning rates")
        self.drawn, self.rates = self.clock + _CLOCK_BYTES, self.clock + _RATES
        self.losses = memory.allocate(4 * steps, "the losses")
        self._sent = _pinned(size, np.uint8)
        self._received = _pinned(1 + steps, np.float32)
        self._sent[:] = 0
        self._next = cuda.pagelocked_empty(2 * DRAWN_BYTES, np.uint8)  # of even and odd epochs

    def send(
        self, step: int, rates: Array, drawn: tuple[int, int] | None, stream: cuda.Stream
    ) -> None:
        """Queue the copy to the device; all earlier copies must have ended.

        Args:
            step: Steps of earlier epochs.
            rates: float32 rate of each step.
            drawn: Seed and epoch of the order, if the device draws it.
            stream: Where the epoch runs.
        """
        words = self._sent[: _CLOCK_BYTES + DRAWN_BYTES].view(np.uint64)
        words[:2] = 0, step
        if drawn is not None:
            words[2:] = drawn
        end = _RATES + 4 * len(rates)
        self._sent[_RATES:end].view(np.float32)[:] = rates
        cuda.memcpy_htod_async(self.clock, self._sent[:end], stream)

    def send_next(self, drawn: tuple[int, int], stream: cuda.Stream) -> None:
        """Queue the copy of seed and epoch of the next order; that before the last has ended."""
        first = DRAWN_BYTES * (drawn[1] % 2)
        words = self._next[first : first + DRAWN_BYTES]
        words.view(np.uint64)[:] = drawn
        cuda.memcpy_htod_async(self.drawn, words, stream)

    def fetch(self, steps: int, stream: cuda.Stream, *, word: int = 0) -> None:
        """Queue the copy of the losses from the device, and of the 32 bits at address ``word``."""
        cuda.memcpy_dtoh_async(self._received[1 : 1 + steps], self.losses, stream)
        if word:
            cuda.memcpy_dtoh_async(self._received[:1], word, stream)

    def fetched(self, steps: int) -> npt.NDArray[np.float32]:
        """Return the losses, after the stream has finished."""
        losses: npt.NDArray[np.float32] = np.array(self._received[1 : 1 + steps])
        return losses

    def word(self) -> int:
        """Return the 32 bits, after the stream has finished."""
        return int(self._received[:1].view(np.uint32)[0])

    def close(self) -> None:
        """Free the memory of the host; no copy may be running."""
        for array in (self._sent, self._next, self._received):
            array.base.free()


def _pinned(length: int, kind: npt.DTypeLike) -> Any:
    try:
        return cuda.pagelocked_empty(length, kind)
    except cuda.MemoryError as error:
        needed = length * np.dtype(kind).itemsize
        raise OutOfHostMemory("the numbers of an epoch", needed) from error
