"""Ctrl-C: once to start no more trials, twice to terminate the running ones."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ProposalStopped(BaseException):
    """A signal stopped the computation of a proposal, which can take seconds."""


@dataclass(slots=True)
class StopRequest:
    """Whether the user wants to stop: set by signals, read by the controller.

    Attributes:
        requested: Start no more trials.
        now: Terminate the running trials as well.
        number: The signal; 0 without one.
        is_proposing: Whether the next signal raises ProposalStopped.
    """

    requested: bool = False
    now: bool = False
    number: int = 0
    is_proposing: bool = False

    @contextmanager
    def ends_proposal(self) -> Iterator[None]:
        """Raise ProposalStopped at the first signal in this context, which must store nothing.

        A signal in the destructor of an object, which can raise nothing, raises it at the end.
        """
        self.is_proposing = is_armed = not self.requested
        before = sys.unraisablehook

        def show(unraisable: sys.UnraisableHookArgs) -> None:
            if unraisable.exc_type is not ProposalStopped:
                before(unraisable)

        sys.unraisablehook = show
        try:
            yield
        finally:
            sys.unraisablehook = before
            self.is_proposing = False
        if is_armed and self.requested:
            raise ProposalStopped


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Yield a StopRequest: the first SIGINT or SIGTERM sets ``requested``, the second ``now``."""
    stop = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.now = stop.requested
        stop.requested, stop.number = True, number
        if stop.is_proposing:
            stop.is_proposing = False
            raise ProposalStopped

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
