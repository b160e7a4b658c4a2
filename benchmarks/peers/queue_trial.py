"""The trial of ``benchmarks/queue_peers``; it needs only the standard library."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def trial(records: str, seconds: float) -> float:
    """Sleep; append the times of start and end to ``records``."""
    start = time.time()
    if seconds:
        time.sleep(seconds)
    file = os.open(records, os.O_WRONLY | os.O_APPEND)
    os.write(file, f"{start!r} {time.time()!r}\n".encode())
    os.close(file)
    return start


def arguments() -> tuple[Path, int, float, int]:
    """Return folder, trials, seconds and slots of the command line."""
    folder, trials, seconds, slots = sys.argv[1:5]
    return Path(folder), int(trials), float(seconds), int(slots)


if __name__ == "__main__":
    trial(sys.argv[1], float(sys.argv[2]))
