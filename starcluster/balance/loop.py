"""Poll a cluster's queue and apply :func:`starcluster.balance.decide.decide`."""

from __future__ import annotations

import contextlib
import shlex
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sge_jobs import AccountingRecord, parse_accounting
from starcluster.balance.decide import Decision, Limits, QueueSnapshot, decide
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
            snapshot = replace(
                take_snapshot(cluster), since_change_s=time.monotonic() - self._changed
            )
            decision = decide(snapshot, self.limits)
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

    def _do(self, cluster: Cluster, decision: Decision) -> bool:
        try:
            if decision.drain:
                drain(cluster, decision.drain)
                self.lifecycle.remove(list(decision.drain), force=True)
            if decision.remove:
                self.lifecycle.remove(list(decision.remove))
            if decision.add:
                short = [
                    instance.alias.removeprefix(f"{cluster.name}-")
                    for instance in cluster.instances
                ]
                names = plan.free_aliases(short, decision.add)
                self.lifecycle.add(plan.more_nodes(cluster.template, names), cluster.template)
        except StarClusterError as error:
            # The next poll sees the result; one error must not stop the balancer.
            self._say(f"Error: {error}")
        if decision.add or decision.remove or decision.drain:
            self._changed = time.monotonic()
        if decision.terminate:
            self.lifecycle.terminate()
        return decision.terminate


def take_snapshot(cluster: Cluster) -> QueueSnapshot:
    """Read jobs and slots from the master, and interruption notices from spot nodes."""
    # UTC, because the master may be in another time zone than this machine.
    command = "TZ=UTC qstat -u '*' -f -r -xml -explain E"
    text = cluster.master.ssh.execute(command, timeout_s=60)
    now = datetime.now(UTC)
    snapshot = read_queue("\n".join(text), now.replace(tzinfo=None))
    age = {
        instance.alias: (now - instance.launched).total_seconds() if instance.launched else 0.0
        for instance in cluster.instances
        if instance.state in ("pending", "running") and instance.id != cluster.master.id
    }
    return replace(snapshot, age_s=age, interrupted=frozenset(interrupted(cluster)))


def ended_jobs(cluster: Cluster, lookback: timedelta) -> list[AccountingRecord]:
    """Return the finished jobs that started within ``lookback``."""
    since = datetime.now(UTC) - lookback
    command = f"TZ=UTC LC_ALL=C qacct -b {since:%Y%m%d%H%M} -j"
    # qacct exits with status 1 if there are no such jobs.
    lines = cluster.master.ssh.execute(command, ignore_exit_status=True, timeout_s=60)
    return parse_accounting("\n".join(lines))


def read_queue(xml: str, now: datetime) -> QueueSnapshot:
    """Return jobs and slots from ``qstat -f -r -xml``; held jobs do not count as waiting."""
    root = ET.fromstring(xml[xml.index("<?xml") :])  # noqa: S314 - of our own master
    slots, free, running, busy = [], 0, 0, set()
    for queue in root.iter("Queue-List"):
        total = int(queue.findtext("slots_total") or 0)
        used = int(queue.findtext("slots_used") or 0)
        slots.append(total)
        if not set(queue.findtext("state") or "") & set("adDuEs"):
            free += max(total - used, 0)
        jobs = queue.findall("job_list")
        running += len(jobs)
        if jobs or used:
            busy.add((queue.findtext("name") or "").partition("@")[2])
    waiting = []
    for job in root.findall("job_info/job_list"):
        state = job.findtext("state") or ""
        if "h" in state or "E" in state or "q" not in state:
            continue
        since = job.findtext("JB_submission_time") or ""
        waited = (now - datetime.fromisoformat(since)).total_seconds() if since else 0.0
        waiting += [waited] * _tasks(job.findtext("tasks") or "")
    return QueueSnapshot(
        waiting_s=tuple(waiting),
        slots_per_node=max([1, *slots]),
        free_slots=free,
        running_jobs=running,
        busy=frozenset(busy),
    )


def _tasks(text: str) -> int:
    """Return the number of tasks in ``1-41:1`` or ``3,5``; 1 for a job without tasks."""
    count = 0
    for part in filter(None, text.split(",")):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        count += (int(last or first) - int(first)) // int(step or 1) + 1
    return count or 1


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
