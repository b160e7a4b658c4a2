"""What a fork of this process would lose."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

_TASKS = "/proc/self/task"
_FILES = "/proc/self/fd"
_GPUS = ("/dev/nvidia", "/dev/kfd")
# The thread of pyarrow that returns memory; jemalloc turns it off in the child of a fork.
_JEMALLOC = "jemalloc_bg_thd"


def what_a_fork_loses() -> str:
    """Return what this process has and its forks cannot use: threads, a GPU; or nothing."""
    if count := threads():
        return f"started {count} threads"
    if device := gpu_device():
        return f"opened {device}"
    return ""


def threads() -> int:
    """Return the number of threads that a fork would lose.

    Libraries such as OpenBLAS end their threads before a fork and start them again when needed.
    """
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    own = str(threading.get_native_id())
    return sum(_is_lost(task) for task in os.listdir(_TASKS) if task != own)  # noqa: PTH208


def _is_lost(task: str) -> bool:
    """Return whether a fork would lose a thread that its library needs and does not restart."""
    try:
        name = Path(_TASKS, task, "comm").read_text().strip()
    except OSError:  # it has ended
        return False
    return name != _JEMALLOC


def gpu_device() -> str:
    """Return the device of a GPU that this process has open: a fork could not use it."""
    for fd in os.listdir(_FILES):  # noqa: PTH208
        with contextlib.suppress(OSError):
            path = os.readlink(f"{_FILES}/{fd}")  # noqa: PTH115
            if path.startswith(_GPUS):
                return path
    return ""
