"""Apply decisions to a cluster, and finish those that another process did not complete."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable

from starcluster.balance import work
from starcluster.balance.decision.decide import Decision, QueueSnapshot
from starcluster.balance.observation.observe import Observer, new_aliases
from starcluster.balance.work import Work
from starcluster.cluster.cluster import Cluster
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.errors import NotTaken, StarClusterError
from starcluster.launch import plan
from starcluster.model import is_master


class Actions:
    """Changes one cluster. Each change of nodes is noted on the master before it begins."""

    def __init__(
        self, lifecycle: ClusterLifecycle, observer: Observer, say: Callable[[str], None]
    ) -> None:
        self._lifecycle, self._observer, self._say = lifecycle, observer, say

    def do(self, cluster: Cluster, decision: Decision) -> str:
        """Apply a decision; return ``stopped`` or ``terminated`` at the end of the cluster.

        An error is printed: the next check sees its result.
        """
        todo = _work_of(cluster, decision)
        try:
            if todo is not None:
                self._note_and_do(cluster, decision, todo)
            if decision.terminate or (decision.stop and _has_spot_master(cluster)):
                self._lifecycle.terminate()
                return "terminated"
            if decision.stop:
                self._lifecycle.stop(terminate_unstoppable=True)
                return "stopped"
        except StarClusterError as error:
            self._say(f"Error: {error}")
        return ""

    def _note_and_do(self, cluster: Cluster, decision: Decision, todo: Work) -> None:
        ssh = cluster.master.ssh
        work.note(ssh, todo)
        try:
            if decision.add:
                names = new_aliases(cluster, decision.add)
                nodes = plan.more_nodes(cluster.template, names)
                self._lifecycle.add(nodes, cluster.template, renumber=False)
            else:
                self._take_away(cluster, todo)
        except NotTaken:
            work.forget(ssh)  # nothing was changed
            raise
        finally:
            self._observer.changed()
        work.forget(ssh)

    def _take_away(self, cluster: Cluster, todo: Work) -> None:
        if todo.kind == work.DRAIN:
            drain(cluster, todo.aliases)
            self._lifecycle.remove(list(todo.aliases), force=True)
        else:
            self._remove_idle(cluster, todo.aliases)

    def finish(self, cluster: Cluster, snapshot: QueueSnapshot, todo: Work) -> None:
        """Complete a change that a process began before it ended, with the nodes that exist."""
        existing = {each.alias for each in cluster.instances if each.state in _STARTED}
        left = [alias for alias in todo.aliases if alias in existing]
        if todo.kind == work.ADD:
            ready = {place.host for place in snapshot.cell.places if place.usable}
            left = [alias for alias in left if alias not in ready]
        try:
            if left and todo.kind == work.ADD:
                self._lifecycle.adopt(left)
            elif left:
                self._take_away(cluster, Work(kind=todo.kind, aliases=tuple(left)))
            work.forget(cluster.master.ssh)
        except StarClusterError as error:
            self._say(f"Error: {error}")
        finally:
            self._observer.changed()

    def _remove_idle(self, cluster: Cluster, aliases: tuple[str, ...]) -> None:
        """Remove nodes, except those on which a job has started since the snapshot."""
        _qmod(cluster, "-d", aliases)  # from now on no job starts
        removed: list[str] = []
        try:
            busy = self._observer.take_snapshot(cluster).busy
            idle = [alias for alias in aliases if alias not in busy]
            if idle:
                removed = self._lifecycle.remove(idle)
        finally:
            kept = [alias for alias in aliases if alias not in removed]
            _qmod(cluster, "-e", kept)
        if kept:
            self._say(f"not removed, because a job has started: {', '.join(kept)}")


_STARTED = ("pending", "running")


def _work_of(cluster: Cluster, decision: Decision) -> Work | None:
    """Return the change of nodes of a decision."""
    if decision.drain:
        return Work(kind=work.DRAIN, aliases=decision.drain)
    if decision.remove:
        return Work(kind=work.REMOVE, aliases=decision.remove)
    if not decision.add:
        return None
    names = new_aliases(cluster, decision.add)
    hosts = tuple(plan.host_name(cluster.name, name, cluster.template) for name in names)
    return Work(kind=work.ADD, aliases=hosts)


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
