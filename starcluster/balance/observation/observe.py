"""Observe a cluster: its queue on the master, its instances and their cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import inf

from sge_jobs import AccountingRecord, parse_accounting
from starcluster.aws import prices
from starcluster.aws.model import InstanceType
from starcluster.balance.decision.decide import Costs, Decision, Limits, QueueSnapshot
from starcluster.balance.journal import journal
from starcluster.balance.journal.money import Entry, idle_since, spent
from starcluster.balance.observation import read
from starcluster.balance.observation.new_node import NewNodes
from starcluster.cluster.cluster import Cluster
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.errors import RemoteCommandFailed, SshError, StarClusterError
from starcluster.launch import plan
from starcluster.launch.survey import PRICES_S
from starcluster.logger import log
from starcluster.money import record
from starcluster.node.node import Node
from starcluster.threadpool import ThreadPool, soon

# Reads the interruption notice by IMDSv2; the answer is 404 without a notice.
_NOTICE = """
token=$(curl -sf -m 2 -X PUT http://169.254.169.254/latest/api/token \
  -H 'X-aws-ec2-metadata-token-ttl-seconds: 60') &&
curl -sf -m 2 -H "X-aws-ec2-metadata-token: $token" \
  http://169.254.169.254/latest/meta-data/spot/instance-action
"""


class Observer:
    """Takes snapshots of one cluster, and records them with the decisions on the master.

    Attributes:
        name: The balancer, for people.
    """

    def __init__(
        self,
        lifecycle: ClusterLifecycle,
        limits: Limits,
        *,
        interval_s: float = 60.0,
        name: str = "",
    ) -> None:
        self.name = name
        self._lifecycle, self._limits = lifecycle, limits
        self._interval_s = interval_s
        self._changed = float("-inf")
        self._new_nodes = NewNodes()
        self._types: dict[str, InstanceType] = {}
        self._prices: dict[str, float] = {}
        self._last: Entry | None = None

    def changed(self) -> None:
        """Note that nodes were added or removed now."""
        self._changed = time.monotonic()

    def take_snapshot(self, cluster: Cluster, idle_at_most_s: float = inf) -> QueueSnapshot:
        """Read jobs, places and the journal from the master, and notices from spot nodes.

        Args:
            idle_at_most_s: Seconds since the last setup of nodes.
        """
        workers = [
            instance
            for instance in cluster.instances
            if instance.state in ("pending", "running") and instance.id != cluster.master.id
        ]
        kind = cluster.template.node_instance_type[-1].instance_type
        alike = [instance.alias for instance in workers if instance.type == kind]
        ssh = cluster.master.ssh
        text = ssh.execute(read.command(alike), timeout_s=60)
        now = datetime.now(UTC)
        reading = read.read("\n".join(text), now.replace(tzinfo=None))
        self._last = next(iter(journal.last_entries(ssh, 1)), None)
        idle = idle_since(
            self._last,
            jobs_left=bool(reading.jobs or reading.running_jobs),
            started=cluster.master.instance.launched or now,
            now=now,
        )
        idle_s = (now - idle).total_seconds() if idle else 0.0
        return QueueSnapshot(
            jobs=reading.jobs,
            cell=reading.cell,
            new_node=self._new_nodes.predict(self._type(kind), alike, reading),
            new_names=tuple(
                plan.host_name(cluster.name, alias, cluster.template)
                for alias in new_aliases(cluster, self._limits.max_nodes)
            ),
            running_jobs=reading.running_jobs,
            age_s={
                each.alias: (now - each.launched).total_seconds() if each.launched else 0.0
                for each in workers
            },
            busy=reading.busy,
            since_change_s=time.monotonic() - self._changed,
            interrupted=frozenset(interrupted(cluster)),
            idle_s=min(idle_s, idle_at_most_s),
            costs=self.costs(cluster),
        )

    def costs(self, cluster: Cluster) -> Costs:
        """Return what the cluster costs, by the last entry of the journal that was read."""
        kind = cluster.template.node_instance_type[-1].instance_type
        known = self._on_demand({kind, *(instance.type for instance in cluster.instances)})
        return Costs(
            spent=spent(self._last, cluster.instances, known, datetime.now(UTC)),
            per_hour=plan.cost_of(cluster.instances, known).dollars,
            new_node=known.get(kind, 0.0),
        )

    def record(self, cluster: Cluster, snapshot: QueueSnapshot, decision: Decision) -> None:
        """Add a check to the journal on the master."""
        now = datetime.now(UTC)
        idle = None if snapshot.jobs_left else now - timedelta(seconds=snapshot.idle_s)
        self._last = Entry(
            time=now,
            nodes=1 + len(snapshot.age_s),
            running_jobs=snapshot.running_jobs,
            waiting_jobs=len(snapshot.waiting_s),
            action=decision.action,
            why=decision.why,
            dollars_per_hour=round(snapshot.costs.per_hour, 4),
            spent=round(snapshot.costs.spent, 4),
            unknown=plan.cost_of(cluster.instances, self._prices).unknown,
            budget=self._limits.budget,
            idle_since=idle,
            interval_s=self._interval_s,
            by=self.name,
        )
        try:
            journal.append(cluster.master.ssh, self._last)
        except RemoteCommandFailed as error:  # a full disk must not stop the balancer
            log.warning("cannot write %s: %s", journal.PATH, error.what)
        self._record_bill(cluster)

    def _record_bill(self, cluster: Cluster) -> None:
        """Record the runs of the nodes, for ``starcluster cost`` and for ``spearmint``."""
        try:
            record(self._lifecycle.ec2, cluster.name, ssh=cluster.master.ssh)
        except (StarClusterError, OSError) as error:
            log.warning("cannot record the bill: %s", error)

    def _on_demand(self, types: set[str]) -> Mapping[str, float]:
        if missing := types - self._prices.keys():
            unknown: dict[str, float] = {}
            ec2 = self._lifecycle.ec2
            self._prices |= soon(
                lambda: prices.on_demand(ec2, missing), within_s=PRICES_S, otherwise=unknown
            )
        return self._prices

    def _type(self, kind: str) -> InstanceType:
        if kind not in self._types:
            self._types |= self._lifecycle.ec2.instance_types([kind])
        unknown = InstanceType(name=kind, vcpus=1, memory_mib=0, architecture="x86_64")
        return self._types.get(kind, unknown)


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

    return [alias for alias in ThreadPool().map(interrupted_alias, spot_nodes(cluster)) if alias]


def spot_nodes(cluster: Cluster) -> list[Node]:
    """Return the running spot instances except the master."""
    return [node for node in cluster.nodes if node.is_spot() and not node.is_master()]
