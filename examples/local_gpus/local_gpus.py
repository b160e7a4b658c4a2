"""Give each trial on a machine its own GPU, with a lock that the kernel releases."""

import fcntl
import os
import tempfile
import time
from pathlib import Path

_held = []  # open until the process ends


def take_gpu(count):
    """Wait for a free GPU out of ``count``, lock it and make it the only visible GPU."""
    folder = Path(tempfile.gettempdir(), f"gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        for gpu in map(str, range(count)):
            file = (folder / gpu).open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                continue
            _held.append(file)
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu
            return gpu
        time.sleep(0.1)
