"""The number of trials that run at the same time, from the driver."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from spearmint.drivers import Driver

_INTERVAL_S = 60.0  # between two checks for added and removed hosts
_SECOND_S = 10.0  # from the first check to the second
_RECOVERY_S = (5.0, 60.0)  # the same after the queue was unreachable, and for how long


@dataclass(slots=True)
class Capacity:
    """Follows the room that the driver has.

    Attributes:
        driver: The driver to ask.
        concurrent: Number of concurrent trials now.
        follows: Whether ``concurrent`` follows the driver; otherwise it is constant.
    """

    driver: Driver
    concurrent: int
    follows: bool
    _asked: float = field(init=False)
    _recovers_until: float = float("-inf")

    def __post_init__(self) -> None:
        """Check a second time soon: hosts may report only now, after a restart of the queue."""
        now = time.monotonic()
        self._asked = now - _INTERVAL_S + _SECOND_S
        if self.concurrent <= 1:
            self._recovers_until = now + _RECOVERY_S[1]

    def expect_return(self) -> None:
        """Ask now and then every few seconds: the queue answers again, its hosts report later."""
        self._asked = float("-inf")
        self._recovers_until = time.monotonic() + _RECOVERY_S[1]

    def update(self) -> str:
        """Ask the driver if it is time to; return a message if the number has changed.

        Raises:
            DriverUnreachable: The queue does not answer.
        """
        now = time.monotonic()
        recovers = now < self._recovers_until
        if not self.follows or now - self._asked < (_RECOVERY_S[0] if recovers else _INTERVAL_S):
            return ""
        found = self.driver.capacity()
        self._asked = now
        if found == self.concurrent or (recovers and found < self.concurrent):
            return ""
        self.concurrent = found
        return f"The queue now has room for {found} concurrent trials."
