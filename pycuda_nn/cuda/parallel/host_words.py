"""Words in host memory that kernels of all GPUs read: whether to stop, and a beating heart."""

from __future__ import annotations

import threading

import numpy as np
import pycuda.driver as cuda

BEAT_S = 0.1
_STOP, _BEATS = 0, 1  # places, as in exchange.cuh


class HostWords:
    """Ends the waits of kernels for other GPUs.

    A kernel gives up when ``stop`` was called, or after a number of beats. The beats come from a
    thread of this process: while the process is suspended, nothing is given up.
    """

    def __init__(self) -> None:
        """Allocate the words and start the beats; a context must be active in this thread."""
        flags = cuda.host_alloc_flags.DEVICEMAP | cuda.host_alloc_flags.PORTABLE
        self._words = cuda.pagelocked_empty(64, np.uint32, mem_flags=flags)
        self._words[:] = 0
        self.address = int(self._words.base.get_device_pointer())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="beats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let all kernels give up; from any thread."""
        if not self._ended.is_set():
            self._words[_STOP] = 1

    def end_beats(self) -> None:
        """End the thread; kernels that still wait were stopped before."""
        self._ended.set()
        self._thread.join()

    def close(self) -> None:
        """Free the words, in the thread that has allocated them, after all kernels have ended."""
        self.end_beats()
        self._words.base.free()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            self._words[_BEATS] += 1
