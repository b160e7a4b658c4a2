"""Ctrl-C: once to stop asking for trials, twice to end those that run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from spearmint.controller.controller import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Yield a Stop that the first SIGINT or SIGTERM sets to asking, the second to now."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.now = stop.asking
        stop.asking = True

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
