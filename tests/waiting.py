"""Waiting for what other processes do, by progress instead of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 0.02


def until(
    happens: Callable[[], object],
    limit_s: float = 60.0,
    step_s: float = STEP_S,
    *,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Return when ``happens()`` is true.

    The limit is a number of looks, as many as a machine with nothing else to do takes in
    ``limit_s``: on a busy one, where the others are slower too, they take longer.

    Args:
        happens: What is looked at.
        limit_s: How long nothing may happen.
        step_s: Pause between two looks.
        progress: Its value changes while all goes well; the looks then count from the beginning.

    Raises:
        TimeoutError: It did not happen within so many looks.
    """
    left, before = limit_s, progress()
    while not happens():
        left -= step_s
        if (now := progress()) != before:
            left, before = limit_s, now
        if left < 0:
            break
        time.sleep(step_s)
    else:
        return
    raise TimeoutError(f"it did not happen within {limit_s:g} s of an idle machine")
