"""Sample the GPUs of a trial: ``-m spearmint.trial.gpu_use.monitor FOLDER PID START STEP``.

A process of its own: NVML can take seconds to start and hangs with a faulty GPU, and a thread of
the trial would be lost in its forks. Standard input is a socket from the runner PID. The monitor
sends a byte after its first sample. It ends when the runner closes the socket or has exited, also
while a call of NVML does not return.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from spearmint.layout import TrialFolder
from spearmint.trial.gpu_use.meter import Meter
from spearmint.trial.gpu_use.record import write_gpu_use

_SHARED = "CUDA_MPS_PIPE_DIRECTORY"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LONGEST_PAUSE = 16  # samples between two writes: many trials can share a file system
_WRITE_S = 0.5  # how long the end waits for a file system that does not answer


class Record:
    """What a meter has measured in a job that started at ``start``; two threads can write it."""

    def __init__(self, folder: TrialFolder, start: float) -> None:
        self._folder, self._start = folder, start
        self._meter: Meter | None = None
        self._begun: float | None = None
        self._seconds = 0.0
        self._writing = threading.Lock()

    def add(self, meter: Meter) -> None:
        """Take one sample."""
        is_used, self._meter = meter.sample(), meter
        self._seconds = round(max(0.0, time.time() - self._start), 1)
        if is_used and self._begun is None:
            self._begun = self._seconds

    def write(self) -> None:
        """Replace the file if there is a sample."""
        if self._meter is None or not self._writing.acquire(timeout=_WRITE_S):
            return
        try:
            about = {"start": self._start, "seconds": self._seconds, "first_use_s": self._begun}
            about["shared"] = bool(os.environ.get(_SHARED))
            write_gpu_use(self._folder, {**about, **self._meter.result()})
        finally:
            self._writing.release()


def main(path: str, runner: str, start: str, step_s: str) -> int:
    """Sample every STEP seconds until the runner ends the monitor or exits."""
    channel = socket.socket(fileno=0)
    _end_by_signals(channel)
    record = Record(TrialFolder(Path(path)), float(start))
    sampling = threading.Thread(target=_sample, args=(record, channel, float(step_s)), daemon=True)
    sampling.start()
    poller = select.poll()
    poller.register(channel, select.POLLIN | select.POLLHUP)
    with contextlib.suppress(AttributeError, OSError):  # an old kernel; or it has exited
        poller.register(os.pidfd_open(int(runner)), select.POLLIN)
    poller.poll()
    record.write()
    return 0


def _end_by_signals(channel: socket.socket) -> None:
    """Let signals that end the job end the monitor with a last record; ignore warnings."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: channel.shutdown(socket.SHUT_RD))
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def _sample(record: Record, channel: socket.socket, step_s: float) -> None:
    """Sample until the process exits; write after 1, 2, 4, 8 and then every 16 samples."""
    with contextlib.suppress(LookupError, ImportError, OSError):
        meter = Meter(os.environ.get(_VISIBLE, "0"))
        left = pause = 1
        while True:
            record.add(meter)
            left -= 1
            if left == 0:
                record.write()
                channel.send(b".")
                left = pause = min(2 * pause, _LONGEST_PAUSE)
            time.sleep(step_s)


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    os._exit(status)  # without the thread, and without nvmlShutdown, which can hang as well
