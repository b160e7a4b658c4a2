"""Take this host out of the rotation while jobs cannot get its GPUs, and put it back afterwards.

Out of the rotation, the host reports no GPU that the scheduler could give to a job. The host needs
no rights for that, and it does not touch the state of its queues, which administrators set.
"""

from __future__ import annotations

import os
import syslog
import time

from sge_jobs.node.child import QUERY_S, in_child
from sge_jobs.node.claim.assignment import NodeSettings
from sge_jobs.node.failed_start import FailedStart, encode
from sge_jobs.node.queries import QueryFailed, ask
from sge_jobs.node.start_check import PASSED, fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

COMPLEX = "gpu_fault"
"""Load value with the reason; the host leaves the rotation only in a cell with this complex."""

KEPT = "gpu_kept"
"""Shortcut of the complex in a cell whose faulty hosts stay in the rotation."""

IN_ROTATION = "none"
_IN_A_ROW = 2  # failed checks until the host leaves, and passed ones until it returns
_CHECK_S = 20.0
_TIMEOUT_S = 10.0
_NOBODY = 65534


class Rotation:
    """Whether this host is in the rotation.

    Args:
        check: Returns why jobs cannot get GPUs; empty if they can.

    Attributes:
        fault: Why jobs cannot get the GPUs of the host; None if they can.
        stays: Whether the host stays in the rotation nevertheless.
    """

    def __init__(self, host: str, check: Callable[[], str]) -> None:
        self.fault: FailedStart | None = None
        self.stays = False
        self._host, self._check = host, check
        self._in_a_row = 0
        self._check_at = 0.0

    def look(self) -> None:
        """Check the host, seldom while the result is the same as before."""
        if time.monotonic() < self._check_at:
            return
        what = self._check()
        if bool(what) == (self.fault is not None):
            if self.fault is not None:
                self.fault.reason = what
            self._in_a_row, self._check_at = 0, time.monotonic() + (0.0 if what else _CHECK_S)
            return
        self._in_a_row += 1
        if self._in_a_row < _IN_A_ROW:
            return
        self._in_a_row = 0
        if what:
            self.fault = FailedStart(self._host, what, at=int(time.time()))
            _log(f"jobs cannot get the GPUs of host {self._host}: {what}")
        else:
            self.fault = None
            _log(f"jobs can get the GPUs of host {self._host} again")

    def word(self) -> str:
        """Return the load value: the fault, or :data:`IN_ROTATION`."""
        if self.fault is None:
            return IN_ROTATION
        self.fault.times = 0 if self.stays else _IN_A_ROW
        return encode(self.fault)

    @property
    def is_out(self) -> bool:
        """Whether the host is out of the rotation."""
        return self.fault is not None and not self.stays


def _log(text: str) -> None:
    syslog.openlog("sge-jobs")
    syslog.syslog(syslog.LOG_WARNING, text)


def check_host() -> str:
    """Return why jobs cannot get GPUs of this host; else empty."""
    return fault(NodeSettings()) or check_starter()


def check_starter() -> str:
    """Return why ``gpu-starter --start-check`` fails for a user without rights; else empty."""
    what = in_child(_check_as_nobody)
    return f"the starter gave no answer within {QUERY_S:g} s" if what is None else what


def _check_as_nobody() -> str:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    starter = f"{os.path.dirname(os.path.abspath(__file__))}/gpu-starter"
    hidden = ("JOB_ID", "SGE_TASK_ID")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        answer = ask([starter, "--start-check"], environment, _TIMEOUT_S)
    except QueryFailed as error:
        return error.output.strip() or str(error)
    return "" if answer.strip() == PASSED else f"the starter printed: {answer.strip()[:200]}"
