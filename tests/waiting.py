"""Wait for other processes, independent of the speed of the machine, and look at them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil

STEP_S = 0.02
_SLOWER = 3  # a busy machine, also at what costs no polls, such as the boot of a host
_LONGEST_S = 300.0


def until(
    happens: Callable[[], object],
    limit_s: float = 60.0,
    step_s: float = STEP_S,
    *,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Poll until ``happens()`` is true.

    The limit is a number of polls: three times as many as an idle machine does in ``limit_s``, but
    for a longer limit than 100 s at most 300 s. On a busy machine, where other processes are also
    slower, the polls take longer.

    Args:
        happens: The condition.
        limit_s: Timeout in seconds of an idle machine.
        step_s: Pause between two polls in seconds.
        progress: When its value changes, the timeout starts from the beginning.

    Raises:
        TimeoutError: The condition was not true within this number of polls.
    """
    allowed_s = max(limit_s, min(_SLOWER * limit_s, _LONGEST_S))
    left, before = allowed_s, progress()
    while not happens():
        left -= step_s
        if (now := progress()) != before:
            left, before = allowed_s, now
        if left < 0:
            break
        time.sleep(step_s)
    else:
        return
    raise TimeoutError(f"not true within {limit_s:g} s of an idle machine")


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie; it can end at any instant."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def text_of(path: Path) -> str:
    """Return the text of a file that another process can create and delete; empty without one."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    return ""
