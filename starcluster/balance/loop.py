"""Poll a cluster's queue and apply :func:`starcluster.balance.decide.decide`."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sge_jobs import AccountingRecord, parse_accounting
from starcluster.aws.model import InstanceType
from starcluster.balance import read
from starcluster.balance.decide import Decision, Limits, QueueSnapshot, decide
from starcluster.balance.new_node import NewNodes
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
from starcluster.node.node import Node
from starcluster.threadpool import ThreadPool

# Reads the interruption notice by IMDSv2; the answer is 404 without a notice.
_NOTICE = """
token=$(curl -sf -m 2 -X PUT http://169.254.169.254/latest/api/token \
  -H 'X-aws-ec2-metadata-token-ttl-seconds: 60') &&
curl -sf -m 2 -H "X-aws-ec2-metadata-token: $token" \
  http://169.254.169.254/latest/meta-data/spot/instance-action
"""


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
        self._changed = float("-inf")
        self._new_nodes = NewNodes()
        self._types: dict[str, InstanceType] = {}

    def run(self) -> None:
        """Balance until the cluster is terminated. A failed poll changes nothing."""
        done = False
        while not done:
            try:
                cluster = find(self.lifecycle.ec2, self.lifecycle.config, self.lifecycle.name)
                done = self.run_once(cluster)
                if not done:
                    self._pause(cluster)
            except (SshError, Unreachable, Throttled) as error:
                self._say(f"state unknown, retrying in {self.interval_s:g} s: {error.what}")
                self._sleep(self.interval_s)
            except CredentialsError as error:  # they expire within hours, a queue can last days
                self._say(f"state unknown, retrying in {self.interval_s:g} s: {error}")
                self._sleep(self.interval_s)
                with contextlib.suppress(CredentialsError):
                    self.lifecycle.ec2.open_again()

    def _pause(self, cluster: Cluster) -> None:
        """Wait for the next poll, or until AWS announces the interruption of a spot node."""
        left = self.interval_s
        try:
            while left > 0:
                step = min(self.notice_s if _spot_nodes(cluster) else left, left)
                self._sleep(step)
                left -= step
                if interrupted(cluster):
                    return
        finally:
            cluster.close()

    def run_once(self, cluster: Cluster) -> bool:
        """Take a snapshot and apply the decision; return whether the cluster was terminated."""
        try:
            snapshot = self.take_snapshot(cluster)
            decision = decide(snapshot, self.limits)
            if decision.terminate:  # a job can have been submitted in the meantime
                decision = decide(self.take_snapshot(cluster), self.limits)
            if self.stats is not None:
                ended = ended_jobs(cluster, self.stats.lookback)
                self.stats.add(row_of(datetime.now(UTC), snapshot, decision, ended))
            self._say(
                f"{1 + len(snapshot.age_s)} nodes, {snapshot.running_jobs} jobs running, "
                f"{len(snapshot.waiting_s)} waiting: {decision.why}"
            )
            return self._do(cluster, decision)
        finally:
            cluster.close()

    def take_snapshot(self, cluster: Cluster) -> QueueSnapshot:
        """Read jobs and places from the master, and interruption notices from spot nodes."""
        workers = [
            instance
            for instance in cluster.instances
            if instance.state in ("pending", "running") and instance.id != cluster.master.id
        ]
        kind = cluster.template.node_instance_type[-1].instance_type
        alike = [instance.alias for instance in workers if instance.type == kind]
        text = cluster.master.ssh.execute(read.command(alike), timeout_s=60)
        now = datetime.now(UTC)
        reading = read.read("\n".join(text), now.replace(tzinfo=None))
        return QueueSnapshot(
            jobs=reading.jobs,
            cell=reading.cell,
            new_node=self._new_nodes.predict(self._type(kind), alike, reading),
            new_names=tuple(
                plan.host_name(cluster.name, alias, cluster.template)
                for alias in new_aliases(cluster, self.limits.max_nodes)
            ),
            running_jobs=reading.running_jobs,
            age_s={
                each.alias: (now - each.launched).total_seconds() if each.launched else 0.0
                for each in workers
            },
            busy=reading.busy,
            since_change_s=time.monotonic() - self._changed,
            interrupted=frozenset(interrupted(cluster)),
        )

    def _type(self, kind: str) -> InstanceType:
        if kind not in self._types:
            self._types |= self.lifecycle.ec2.instance_types([kind])
        unknown = InstanceType(name=kind, vcpus=1, memory_mib=0, architecture="x86_64")
        return self._types.get(kind, unknown)

    def _do(self, cluster: Cluster, decision: Decision) -> bool:
        try:
            if decision.drain:
                drain(cluster, decision.drain)
                self.lifecycle.remove(list(decision.drain), force=True)
            if decision.remove:
                self.lifecycle.remove(list(decision.remove))
            if decision.add:
                names = new_aliases(cluster, decision.add)
                self.lifecycle.add(plan.more_nodes(cluster.template, names), cluster.template)
        except StarClusterError as error:
            # The next poll sees the result; one error must not stop the balancer.
            self._say(f"Error: {error}")
        if decision.add or decision.remove or decision.drain:
            self._changed = time.monotonic()
        if decision.terminate:
            self.lifecycle.terminate()
        return decision.terminate


def new_aliases(cluster: Cluster, count: int) -> list[str]:
    """Return the aliases of the next new nodes."""
    prefix = f"{cluster.name}-"
    short = [instance.alias.removeprefix(prefix) for instance in cluster.instances]
    return plan.free_aliases(short, count)


def ended_jobs(cluster: Cluster, lookback: timedelta) -> list[AccountingRecord]:
    """Return the finished jobs that started within ``lookback``."""
    since = datetime.now(UTC) - lookback
    command = f"TZ=UTC LC_ALL=C qacct -b {since:%Y%m%d%H%M} -j"
    # qacct exits with status 1 if there are no such jobs.
    lines = cluster.master.ssh.execute(command, ignore_exit_status=True, timeout_s=60)
    return parse_accounting("\n".join(lines))


def interrupted(cluster: Cluster) -> list[str]:
    """Return the aliases of spot nodes that AWS interrupts within two minutes."""

    def interrupted_alias(node: Node) -> str:
        try:
            answer = node.ssh.run(["sh", "-c", _NOTICE], timeout_s=10)
        except SshError:  # not reachable does not mean interrupted
            return ""
        return node.alias if answer.status == 0 and "action" in answer.stdout else ""

    return [alias for alias in ThreadPool().map(interrupted_alias, _spot_nodes(cluster)) if alias]


def _spot_nodes(cluster: Cluster) -> list[Node]:
    return [node for node in cluster.nodes if node.is_spot() and not node.is_master()]


def drain(cluster: Cluster, aliases: tuple[str, ...]) -> None:
    """Disable the queues of nodes, and rerun their jobs on other nodes."""
    for alias in aliases:
        for option in ("-d", "-rq"):
            command = shlex.join(["qmod", option, f"*@{alias}"])
            cluster.master.ssh.execute(command, ignore_exit_status=True)
