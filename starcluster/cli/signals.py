"""Let SIGTERM and SIGHUP do what Ctrl-C does: a command reports what still runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from starcluster.errors import Interrupted, StarClusterError


class Signalled(KeyboardInterrupt):
    """A signal ends the command as Ctrl-C does.

    Attributes:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"by {signal.Signals(number).name}")
        self.number = number


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
            raise Signalled(number)

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code_of(error: StarClusterError) -> int:
    """Return the exit code of an error: 128 + the signal, if a signal ended the command."""
    if isinstance(error, Interrupted):
        return 128 + getattr(error.__cause__, "number", signal.SIGINT)
    return error.exit_code


def interrupted(changes: Sequence[str], cause: BaseException) -> StarClusterError:
    """Return the error of a command that a signal ended, or that was not confirmed.

    Args:
        changes: Names of its requests that change something in AWS.
        cause: The KeyboardInterrupt; or click.Abort, if the user did not confirm a question.
    """
    is_signal = isinstance(cause, KeyboardInterrupt)
    what = f"interrupted {cause}".strip() if is_signal else "not confirmed"
    # click.Abort also stands for Ctrl-C at a question.
    ends = is_signal or isinstance(cause.__context__, KeyboardInterrupt)
    kind = Interrupted if ends else StarClusterError
    if not changes:
        return kind(f"{what}; nothing was launched or changed in AWS")
    return kind(
        f"{what} after {', '.join(changes)}; AWS has possibly completed the last request",
        "See what exists: starcluster listinstances, listvolumes, listimages and listclusters",
    )
