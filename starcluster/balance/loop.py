"""Poll a cluster's queue and apply :func:`starcluster.balance.decide.decide`."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from starcluster.balance.decide import Decision, Limits, decide, is_over_budget
from starcluster.balance.observe import Observer, ended_jobs, interrupted, new_aliases, spot_nodes
from starcluster.balance.stats import Stats, row_of
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.errors import (
    CredentialsError,
    SshError,
    StarClusterError,
    Throttled,
    Unreachable,
)
from starcluster.launch import plan
from starcluster.model import is_master


class Balancer:
    """Grows and shrinks one cluster until it is stopped or has terminated the cluster."""

    def __init__(
        self,
        lifecycle: ClusterLifecycle,
        limits: Limits,
        *,
        interval_s: float = 60.0,
        notice_s: float = 5.0,
        stats: Stats | None = None,
        say: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare.

        Args:
            interval_s: Seconds between two polls of the queue.
            notice_s: Seconds between two checks of spot nodes for an interruption notice.
            stats: Records each snapshot. Without it, the finished jobs are not queried.
        """
        self.lifecycle, self.limits, self.interval_s = lifecycle, limits, interval_s
        self.notice_s, self.stats, self._say, self._sleep = notice_s, stats, say, sleep
        self._observer = Observer(lifecycle, limits, interval_s=interval_s)

    def run(self) -> str:
        """Balance until the cluster is ``stopped`` or ``terminated``; return which.

        A failed poll changes nothing, unless the budget is spent.
        """
        while True:
            cluster = None
            try:
                cluster = find(self.lifecycle.ec2, self.lifecycle.config, self.lifecycle.name)
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

    def run_once(self, cluster: Cluster) -> str:
        """Take a snapshot and apply the decision; return ``stopped`` or ``terminated`` at the end.

        Returns:
            An empty text if the cluster continues.
        """
        try:
            snapshot = self._observer.take_snapshot(cluster)
            decision = decide(snapshot, self.limits)
            if decision.terminate or decision.stop:  # a job can be new
                snapshot = self._observer.take_snapshot(cluster)
                decision = decide(snapshot, self.limits)
            if self.stats is not None:
                ended = ended_jobs(cluster, self.stats.lookback)
                self.stats.add(row_of(datetime.now(UTC), snapshot, decision, ended))
            self._observer.record(cluster, snapshot, decision)
            self._say(
                f"{1 + len(snapshot.age_s)} nodes, {snapshot.running_jobs} jobs running, "
                f"{len(snapshot.waiting_s)} waiting: {decision.why}"
            )
            return self._do(cluster, decision)
        finally:
            cluster.close()

    def _do(self, cluster: Cluster, decision: Decision) -> str:
        try:
            if decision.drain:
                drain(cluster, decision.drain)
                self.lifecycle.remove(list(decision.drain), force=True)
            if decision.remove:
                self._remove_idle(cluster, decision.remove)
            if decision.add:
                names = new_aliases(cluster, decision.add)
                self.lifecycle.add(plan.more_nodes(cluster.template, names), cluster.template)
            if decision.terminate or (decision.stop and _has_spot_master(cluster)):
                self.lifecycle.terminate()
                return "terminated"
            if decision.stop:
                self.lifecycle.stop(terminate_unstoppable=True)
                return "stopped"
        except StarClusterError as error:
            # The next poll sees the result; one error must not stop the balancer.
            self._say(f"Error: {error}")
        finally:
            if decision.add or decision.remove or decision.drain:
                self._observer.changed()
        return ""

    def _remove_idle(self, cluster: Cluster, aliases: tuple[str, ...]) -> None:
        """Remove nodes, except those on which a job has started since the snapshot."""
        _qmod(cluster, "-d", aliases)  # from now on no job starts
        removed: list[str] = []
        try:
            busy = self._observer.take_snapshot(cluster).busy
            idle = [alias for alias in aliases if alias not in busy]
            if idle:
                removed = self.lifecycle.remove(idle)
        finally:
            kept = [alias for alias in aliases if alias not in removed]
            _qmod(cluster, "-e", kept)
        if kept:
            self._say(f"not removed, because a job has started: {', '.join(kept)}")


def _has_spot_master(cluster: Cluster) -> bool:
    return any(is_master(each.alias) and each.is_spot for each in cluster.instances)


def drain(cluster: Cluster, aliases: tuple[str, ...]) -> None:
    """Disable the queues of nodes, and rerun their jobs on other nodes."""
    _qmod(cluster, "-d", aliases)
    _qmod(cluster, "-rq", aliases)


def _qmod(cluster: Cluster, option: str, aliases: Iterable[str]) -> None:
    for alias in aliases:
        command = shlex.join(["qmod", option, f"*@{alias}"])
        cluster.master.ssh.execute(command, ignore_exit_status=True)
