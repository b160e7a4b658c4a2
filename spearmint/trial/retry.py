"""Retry file operations while a network file system does not respond."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

_PAUSE_S = 1.0

T = TypeVar("T")


def retry_os_error(do: Callable[[], T], timeout_s: float) -> T:
    """Return ``do()``. Retry it once a second after an OSError, and log the first error.

    Raises:
        OSError: ``do`` still fails after ``timeout_s`` seconds.
    """
    deadline, logged = time.monotonic() + timeout_s, False
    while True:
        try:
            return do()
        except OSError as error:
            if time.monotonic() >= deadline:
                raise
            if not logged:
                sys.stderr.write(f"retrying for {timeout_s:g} s: {error}\n")
                logged = True
            time.sleep(_PAUSE_S)
