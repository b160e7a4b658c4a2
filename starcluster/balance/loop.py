"""Poll a cluster's queue and apply :func:`starcluster.balance.decision.decide.decide`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf

from starcluster.balance import work
from starcluster.balance.actions import Actions
from starcluster.balance.decision.decide import (
    Costs,
    Decision,
    Limits,
    QueueSnapshot,
    decide,
    is_over_budget,
)
from starcluster.balance.observation.observe import (
    Observer,
    ended_jobs,
    interrupted,
    spot_nodes,
)
from starcluster.balance.observation.setups import LIMIT_S, Setups
from starcluster.balance.stats.rows import Stats, row_of
from starcluster.balance.turn import Holder, Turn
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.setting_up import Setup
from starcluster.errors import (
    ClusterError,
    CredentialsError,
    NotTaken,
    SshError,
    StarClusterError,
    Throttled,
    Unreachable,
)
from starcluster.launch.claim.hold import Held


class Balancer:
    """Grows and shrinks one cluster until it is stopped or has terminated the cluster."""

    def __init__(
        self,
        lifecycle: ClusterLifecycle,
        limits: Limits,
        *,
        interval_s: float = 60.0,
        notice_s: float = 5.0,
        turn: Turn | None = None,
        stats: Stats | None = None,
        say: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare.

        Args:
            interval_s: Seconds between two polls of the queue.
            notice_s: Seconds between two checks of spot nodes for an interruption notice.
            turn: Makes sure that no other process balances the cluster; None for no check.
            stats: Records each snapshot. Without it, the finished jobs are not queried.
        """
        self.lifecycle, self.limits, self.interval_s = lifecycle, limits, interval_s
        self.notice_s, self.stats, self._say, self._sleep = notice_s, stats, say, sleep
        self._turn = turn
        name = turn.name if turn else ""
        self._observer = Observer(lifecycle, limits, interval_s=interval_s, name=name)
        self.actions = Actions(lifecycle, self._observer, say)
        self._setups = Setups(lifecycle)

    def run(self) -> str:
        """Balance until the cluster is ``stopped`` or ``terminated``; return which.

        A failed poll changes nothing, unless the budget is spent.

        Raises:
            ClusterError: Another process balances the cluster. On the master it waits instead.
        """
        while True:
            cluster = None
            try:
                cluster = find(self.lifecycle.ec2, self.lifecycle.config, self.lifecycle.name)
                if self._waits_for_turn(cluster):
                    self._sleep(self.interval_s)
                    continue
                if end := self.run_once(cluster):
                    return end
                self._pause(cluster)
            except (SshError, Unreachable, Throttled) as error:
                self._say(f"state unknown, retrying in {self.interval_s:g} s: {error.what}")
                if cluster is not None and self._has_spent_budget(cluster):
                    self._say("the budget is spent")
                    if end := self._do(cluster, Decision(stop=True)):
                        return end
                self._sleep(self.interval_s)
            except CredentialsError as error:  # they expire within hours, a queue can last days
                self._say(f"state unknown, retrying in {self.interval_s:g} s: {error}")
                self._sleep(self.interval_s)
                with contextlib.suppress(CredentialsError):
                    self.lifecycle.ec2.open_again()

    def _waits_for_turn(self, cluster: Cluster) -> bool:
        if self._turn is None:
            return False
        try:
            master = cluster.master.instance
            holder = self._turn.take(lambda: cluster.shell(master))
        finally:
            cluster.close()
        if holder is None:
            return False
        if not cluster.is_here:
            raise _not_its_turn(cluster, holder)
        self._say(f"waiting, because {holder.name} balances this cluster")
        return True

    def _has_spent_budget(self, cluster: Cluster) -> bool:
        if self.limits.budget is None:
            return False
        return is_over_budget(self._observer.costs(cluster), self.limits)

    def _pause(self, cluster: Cluster) -> None:
        """Wait for the next poll, or until AWS announces the interruption of a spot node."""
        left = self.interval_s
        try:
            while left > 0:
                step = min(self.notice_s if spot_nodes(cluster) else left, left)
                self._sleep(step)
                left -= step
                if interrupted(cluster):
                    return
        finally:
            cluster.close()

    def look(self, cluster: Cluster) -> None:
        """Print what would be done now; change nothing."""
        with contextlib.closing(cluster):
            busy = self._setups.running(cluster)
            self._say_decision(*self._decide(cluster, busy))

    def run_once(self, cluster: Cluster) -> str:
        """Take a snapshot and apply the decision; return ``stopped`` or ``terminated`` at the end.

        Returns:
            An empty text if the cluster continues.
        """
        with contextlib.closing(cluster):
            busy = self._setups.running(cluster)
            snapshot, decision = self._decide(cluster, busy)
            if decision.terminate or decision.stop:  # a job can be new
                snapshot, decision = self._decide(cluster, busy)
            begun = work.noted(cluster.master.ssh) if busy is None else None
            if begun is not None and not (decision.terminate or decision.stop):
                why = f"another process began to {begun}, and did not complete it"
                decision = Decision(finish=str(begun), why=why)
            if self.stats is not None:
                ended = ended_jobs(cluster, self.stats.lookback)
                self.stats.add(row_of(datetime.now(UTC), snapshot, decision, ended))
            self._observer.record(cluster, snapshot, decision)
            self._say_decision(snapshot, decision)
            if begun is not None and decision.finish:
                self.actions.finish(cluster, snapshot, begun)
                return ""
            return self._do(cluster, decision)

    def _decide(self, cluster: Cluster, busy: Setup | None) -> tuple[QueueSnapshot, Decision]:
        """Return a snapshot and what to do: nothing while another command sets up nodes."""
        idle = self._setups.ended_s if busy is None else 0.0
        snapshot = self._observer.take_snapshot(cluster, inf if idle is None else idle)
        decision = decide(snapshot, self.limits)
        if busy is not None and not self._outlasts(busy, snapshot.costs):
            return snapshot, Decision(why=f"waiting: {busy}")
        return snapshot, decision

    def _outlasts(self, busy: Setup, costs: Costs) -> bool:
        """Return whether the budget ends the cluster although another command sets up nodes."""
        return busy.age_s > LIMIT_S and is_over_budget(costs, self.limits)

    def _do(self, cluster: Cluster, decision: Decision) -> str:
        """Apply a decision, unless another command begins to change or set up nodes before."""

        def guard(held: Held | None = None) -> None:
            self._setups.expect(held.previous if held else None)
            busy = self._setups.running(cluster)
            if busy is not None and not self._outlasts(busy, self._observer.costs(cluster)):
                raise NotTaken(f"waiting: {busy}")

        if decision.action == "none":
            return ""
        try:
            guard()
        except StarClusterError as error:  # without an answer of AWS nothing can be changed
            self._say(error.what)
            return ""
        self.lifecycle.guard = guard
        try:
            return self.actions.do(cluster, decision)
        finally:
            self.lifecycle.guard = None

    def _say_decision(self, snapshot: QueueSnapshot, decision: Decision) -> None:
        self._say(
            f"{1 + len(snapshot.age_s)} nodes, {snapshot.running_jobs} jobs running, "
            f"{len(snapshot.waiting_s)} waiting: {decision.why}"
        )


def _not_its_turn(cluster: Cluster, holder: Holder) -> ClusterError:
    return ClusterError(
        f"cluster '{cluster.name}' is balanced by another process: {holder.name}",
        f"See its decisions: starcluster status {cluster.name}\n"
        f"If it is on the master, remove it: starcluster balance --uninstall {cluster.name}",
    )
