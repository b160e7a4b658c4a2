"""Waiting for what other processes do, by progress instead of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 0.02


def until(happens: Callable[[], object], limit_s: float = 60.0, step_s: float = STEP_S) -> None:
    """Return when ``happens()`` is true.

    The limit is a number of looks, as many as a machine with nothing else to do takes in
    ``limit_s``: on a busy one, where the others are slower too, they take longer.

    Raises:
        TimeoutError: It did not happen within so many looks.
    """
    for _ in range(max(2, round(limit_s / step_s))):
        if happens():
            return
        time.sleep(step_s)
    raise TimeoutError(f"it did not happen within {limit_s:g} s of an idle machine")
