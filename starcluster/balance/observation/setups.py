"""Whether another command changes or sets up nodes, so that the balancer changes nothing."""

from __future__ import annotations

import contextlib
import time

from starcluster.cluster.cluster import Cluster
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.setting_up import KEEP_S, Setup, setups
from starcluster.errors import SshError
from starcluster.launch.claim.claims import Claim, claim_of
from starcluster.launch.claim.process import has_ended, this_process

EXPECT_S = 900.0
"""Seconds in which a setup is expected after its instances were started: they boot first."""
LIMIT_S = 1800.0
"""Seconds for which a setup delays the end of the budget."""
_SETS_UP = ("start", "start -x", "addnode", "restart")


class Setups:
    """The commands of other processes that change or set up nodes of one cluster.

    Attributes:
        ended_s: Seconds since the last setup ended, as the master knows; None without one.
    """

    def __init__(self, lifecycle: ClusterLifecycle) -> None:
        self._lifecycle = lifecycle
        self._expected: dict[str, tuple[float, str]] = {}  # when the change ended, by process
        self._known: list[Setup] = []
        self._read_at = float("-inf")
        self.ended_s: float | None = None

    def running(self, cluster: Cluster) -> Setup | None:
        """Return a command that changes or sets up nodes now, or is about to.

        While the master does not answer, what it said last counts.
        """
        claim = claim_of(self._lifecycle.ec2, self._lifecycle.name)
        with contextlib.suppress(SshError):
            self._known = setups(cluster.master.ssh)
            self._read_at = time.monotonic()
        if claim is not None and claim.active and not claim.mine:
            return Setup(process=claim.process, by=claim.by, age_s=claim.age_s)
        self.expect(claim)
        self.ended_s = min(
            (each.ended_s for each in self._known if each.ended_s is not None), default=None
        )
        return self._by_note() or self._by_claim()

    def expect(self, claim: Claim | None) -> None:
        """Note a change that has ended, and whose setup follows."""
        if claim is None or claim.done_s is None or claim.mine or claim.command not in _SETS_UP:
            return
        if claim.done_s < EXPECT_S:
            self._expected[claim.process] = (time.monotonic() - claim.done_s, claim.by)

    def _by_note(self) -> Setup | None:
        if time.monotonic() - self._read_at > KEEP_S:
            return None
        mine = this_process()[0]
        return next((e for e in self._known if e.ended_s is None and e.process != mine), None)

    def _by_claim(self) -> Setup | None:
        now = time.monotonic()
        for process, (done, by) in list(self._expected.items()):
            since = now - done
            over = [
                each.ended_s + now - self._read_at
                for each in self._known
                if each.process == process and each.ended_s is not None
            ]
            # Seconds of the master and of AWS are whole.
            if since > EXPECT_S or has_ended(process) or any(age <= since + 2 for age in over):
                del self._expected[process]
            else:
                return Setup(process=process, by=by, age_s=since)
        return None
