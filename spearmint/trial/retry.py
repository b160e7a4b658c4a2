"""Try again for a while what a network file system cannot do for a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

_AGAIN_S = 1.0

T = TypeVar("T")


def patiently(do: Callable[[], T], patience_s: float) -> T:
    """Return ``do()``; after an OSError try again, for so many seconds, and say so once."""
    deadline, told = time.monotonic() + patience_s, False
    while True:
        try:
            return do()
        except OSError as error:
            if time.monotonic() >= deadline:
                raise
            if not told:
                sys.stderr.write(f"trying again for {patience_s:g} s: {error}\n")
                told = True
            time.sleep(_AGAIN_S)
