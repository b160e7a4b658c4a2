"""Terminate a cluster, with what AWS does not list yet."""

from __future__ import annotations

import contextlib
import time

from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, aliases, find
from starcluster.cluster.remains import Remains, remains_of
from starcluster.cluster.resize import ClusterResize
from starcluster.errors import AlreadyThere, NoInstances, StarClusterError
from starcluster.launch.claim.claims import TERMINATE
from starcluster.launch.claim.hold import Held
from starcluster.launch.groups import SECURITY_GROUP, remove_groups
from starcluster.launch.wait import ANY_STATE, backoff_delays, wait_for
from starcluster.logger import log
from starcluster.model import group_name
from starcluster.setup.run import run_hook

GONE_S = 600.0
"""Timeout in seconds for AWS to stop or terminate an instance."""


class ClusterEnding(ClusterResize):
    """Terminates one cluster."""

    remains = Remains()

    def terminate(self) -> list[str]:
        """Terminate all instances, remove the groups; return the names of everything removed.

        This includes what an earlier, incomplete call left behind. Afterwards ``remains`` has what
        stays and costs.
        """
        self.remains = remains_of(self.ec2, self.config, self.name)
        with self.report_cost_on_error(), self._take(TERMINATE, wait=False) as held:
            there = held.previous or self._there()
            self._fetch_bill()
            if not there and not self.ec2.security_groups(group_name(self.name)):
                with contextlib.suppress(NoInstances):  # AWS lists the group now
                    find(self.ec2, self.config, self.name)  # raises with a hint
            if held.previous and held.previous.done_s is not None:
                held.state = held.previous.state
            removed = self._terminate_all(held)
            held.before = ()  # so that no record stays
            return removed

    def _fetch_bill(self) -> None:
        """Record what a balancer on the master has recorded, because the master ends."""
        with contextlib.suppress(StarClusterError):
            cluster = Cluster(self.name, self._there(), self.ec2, self.config)
            if cluster.is_here or not cluster.master.instance.profile:
                return
            with contextlib.closing(cluster):
                self._record_bill(cluster.master.ssh)

    def _there(self) -> list[Instance]:
        states = [state for state in ANY_STATE if state != "terminated"]
        return self.ec2.instances(cluster=self.name, states=states)

    def _terminate_all(self, held: Held) -> list[str]:
        """Terminate instances until AWS deletes their group, which proves that none is left.

        AWS possibly does not list the instances and the group of ``held.previous`` yet.
        """
        claim = held.previous
        begun = time.monotonic()
        known: dict[str, Instance] = {}
        removed: list[str] = []
        for pause in backoff_delays():
            new = [instance for instance in self._there() if instance.id not in known]
            if new:
                cluster = Cluster(self.name, new, self.ec2, self.config)
                self._shutdown(cluster)
                self.progress("", f"terminating {aliases(cluster.instances)}")
                held.removed |= {instance.alias for instance in cluster.instances}
                self._terminate(cluster.instances)
                known |= {instance.id: instance for instance in cluster.instances}
                wait_for(self.ec2, list(known), "terminated", GONE_S)
            passed = time.monotonic() - begun
            try:
                gone = remove_groups(self.ec2, self.name)
            except AlreadyThere:
                if passed > GONE_S:
                    raise
            else:
                removed += gone
                lags = claim is not None and not claim.settled_in(passed)
                if any(group.startswith(SECURITY_GROUP) for group in gone) or not lags:
                    return [each.alias or each.id for each in known.values()] + removed
            time.sleep(pause)
        raise AssertionError

    def _shutdown(self, cluster: Cluster) -> None:
        """Call on_shutdown; a failure does not stop the shutdown."""
        with contextlib.closing(cluster):
            try:
                self._hook(cluster, "on_shutdown")
            except StarClusterError as error:
                log.warning("on_shutdown failed, some plugins were not called: %s", error.what)

    def _hook(self, cluster: Cluster, hook: str) -> None:
        if not any(instance.state == "running" for instance in cluster.instances):
            return
        if cluster.plugins:
            run_hook(hook, cluster.plugins, cluster.nodes, cluster.template)
