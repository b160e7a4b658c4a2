"""What an epoch gets from the host and returns to it: one copy each way, which nobody waits for.

The memory of the host exists twice: an epoch can be queued before the results of the last are read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.training.order import DRAWN_BYTES
from pycuda_nn.errors import OutOfHostMemory

Array = npt.NDArray[Any]

_WHAT = "the numbers of an epoch"
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
        self._sent = [pinned(size, np.uint8) for _ in range(2)]
        self._received = [pinned(1 + steps, np.float32) for _ in range(2)]
        self._side = 0
        for sent in self._sent:
            sent[:] = 0
        self._next = cuda.pagelocked_empty(2 * DRAWN_BYTES, np.uint8)  # of even and odd epochs

    def send(
        self, step: int, rates: Array, drawn: tuple[int, int] | None, stream: cuda.Stream
    ) -> None:
        """Queue the copy to the device; that before the last, and its fetch, must have ended.

        Args:
            step: Steps of earlier epochs.
            rates: float32 rate of each step.
            drawn: Seed and epoch of the order, if the device draws it.
            stream: Where the epoch runs.
        """
        before, self._side = self._sent[self._side], 1 - self._side
        sent = self._sent[self._side]
        numbers = slice(0, _CLOCK_BYTES + DRAWN_BYTES)
        words = sent[numbers].view(np.uint64)
        words[:2] = 0, step
        words[2:] = before[numbers].view(np.uint64)[2:] if drawn is None else drawn
        end = _RATES + 4 * len(rates)
        sent[_RATES:end].view(np.float32)[:] = rates
        cuda.memcpy_htod_async(self.clock, sent[:end], stream)

    def send_next(self, drawn: tuple[int, int], stream: cuda.Stream) -> None:
        """Queue the copy of seed and epoch of the next order; that before the last has ended."""
        first = DRAWN_BYTES * (drawn[1] % 2)
        words = self._next[first : first + DRAWN_BYTES]
        words.view(np.uint64)[:] = drawn
        cuda.memcpy_htod_async(self.drawn, words, stream)

    def fetch(self, steps: int, stream: cuda.Stream, *, word: int = 0) -> int:
        """Queue the copy of the losses from the device, and of the 32 bits at address ``word``.

        Returns:
            The ``side`` of :meth:`fetched`.
        """
        received = self._received[self._side]
        cuda.memcpy_dtoh_async(received[1 : 1 + steps], self.losses, stream)
        if word:
            cuda.memcpy_dtoh_async(received[:1], word, stream)
        return self._side

    def fetched(self, steps: int, side: int | None = None) -> npt.NDArray[np.float32]:
        """Return the losses after the copy has ended: of the last fetch, or of that of ``side``."""
        received = self._received[self._side if side is None else side]
        losses: npt.NDArray[np.float32] = np.array(received[1 : 1 + steps])
        return losses

    def word(self) -> int:
        """Return the 32 bits, after the stream has finished."""
        return int(self._received[self._side][:1].view(np.uint32)[0])

    def close(self) -> None:
        """Free the memory of the host; no copy may be running."""
        for array in (*self._sent, self._next, *self._received):
            array.base.free()


def pinned(length: int, kind: npt.DTypeLike, what: str = _WHAT) -> Any:
    """Return pinned memory; ``base.free()`` frees it.

    Raises:
        OutOfHostMemory: There is not enough memory; the message names ``what``.
    """
    try:
        return cuda.pagelocked_empty(length, kind)
    except cuda.MemoryError as error:
        needed = length * np.dtype(kind).itemsize
        raise OutOfHostMemory(what, needed) from error
