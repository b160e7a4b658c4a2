"""Let SIGTERM and SIGHUP do what Ctrl-C does: a command reports what still runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_LIKE_CTRL_C = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGTERM or SIGHUP, and ignore the next ones.

    A terminal or systemd that ends sends several signals, and the report must not be cut short.
    A signal that is ignored, for example by nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in _LIKE_CTRL_C if signal.getsignal(n) is not signal.SIG_IGN]
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            raise KeyboardInterrupt(f"by {signal.Signals(number).name}")

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
