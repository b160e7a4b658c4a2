"""Start, restart, stop and terminate a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from starcluster.aws.instances import settled
from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, aliases, find
from starcluster.cluster.ending import GONE_S, ClusterEnding
from starcluster.cluster.operation import Outcome
from starcluster.cluster.resize import Relaunch
from starcluster.config.template import Template
from starcluster.errors import ClusterError, StarClusterError
from starcluster.launch import plan
from starcluster.launch.claims import busy, claim_of, existing, exists
from starcluster.launch.groups import remove_groups
from starcluster.launch.hold import Held, take
from starcluster.launch.launcher import Launcher, tags_of_node
from starcluster.launch.origin import Origin
from starcluster.launch.preflight import AwsInventory
from starcluster.launch.survey import gather
from starcluster.launch.volumes import attach
from starcluster.launch.wait import (
    failures_of,
    mark_boot,
    require_master,
    wait_for,
    wait_for_reboot,
)
from starcluster.node.node import Node
from starcluster.setup.hooks import load_plugins
from starcluster.setup.run import set_up


class ClusterLifecycle(ClusterEnding):
    """Starts, restarts, stops and terminates one cluster."""

    def prepare(
        self,
        template: Template,
        origin: Origin,
        description: str = "",
        *,
        check: bool = True,
        inventory: AwsInventory | None = None,
    ) -> Launcher:
        """Check with AWS that the new cluster can be launched; launch nothing.

        Args:
            check: Also check the permission to launch.
            inventory: Resources of the template that are already known.

        Raises:
            ClusterError: A cluster of this name exists.
            InputError: The cluster would cost more than the template allows.
        """
        self.require_new()
        load_plugins(template.plugins)  # raises before the launch, not after it
        nodes = plan.whole_cluster(template)
        context = gather(self.ec2, template, nodes, inventory)
        plan.check_cost(template, plan.cost(nodes, context.on_demand, context.spot))
        launcher = Launcher(
            self.ec2, self.name, template, origin, context, self.progress, description
        )
        if check:
            launcher.check(nodes)
        return launcher

    def create(self, launcher: Launcher, *, set_up_too: bool = True) -> Outcome:
        """Launch the prepared cluster and set it up.

        Raises:
            ClusterError: Another command starts the cluster, or has started it.
        """
        self.launcher = launcher
        nodes = plan.whole_cluster(launcher.template)
        hosts = [plan.host_name(self.name, node.alias, launcher.template) for node in nodes]
        held = take(self.ec2, self.name, "start", hosts)
        with self.report_cost_on_error():
            with held:
                try:
                    launched = launcher.launch(nodes, held)
                except BaseException:
                    self._remove_unused(launcher, held)
                    raise
            if not set_up_too:
                return Outcome(ready=(), failed=self._wait_running(launched)[1])
            return self._bring_up(launched, launcher.relaunch)

    def _remove_unused(self, launcher: Launcher, held: Held) -> None:
        """Remove the groups of a launch that failed, unless an instance is in them."""
        with contextlib.suppress(StarClusterError):  # the first error is the one to report
            if launcher.group:
                settled(lambda: self.ec2.delete_security_group(launcher.group))
            remove_groups(self.ec2, self.name)
            # AWS deletes no group with an instance in it, so nothing was launched.
            launcher.sent.clear()
            held.launched.clear()

    def require_new(self) -> None:
        """Raise ClusterError if the cluster exists, or if another command starts it."""
        if found := existing(self.ec2, self.name):
            raise exists(self.ec2, self.name, found)
        claim = claim_of(self.ec2, self.name)
        if claim is not None and claim.active:
            raise busy(claim)

    def start_again(self) -> Outcome:
        """Start the stopped nodes of a cluster, and set up all nodes."""
        cluster = find(self.ec2, self.config, self.name)
        cluster = self._all_named(cluster)  # raises before anything starts to cost
        stopping = [instance.id for instance in cluster.instances if instance.state == "stopping"]
        if stopping:
            wait_for(self.ec2, stopping, "stopped", GONE_S)
        ids = [
            instance.id
            for instance in cluster.instances
            if instance.state in ("stopping", "stopped")
        ]
        with self.report_cost_on_error():
            if ids:
                self.progress("", f"starting {aliases(cluster.instances)}")
                self.ec2.start(ids)
            return self._bring_up(cluster.instances)

    def _all_named(self, cluster: Cluster) -> Cluster:
        """Tag instances that have no alias because their launch was interrupted."""
        nameless = [instance for instance in cluster.instances if not instance.alias]
        taken = {instance.alias for instance in cluster.instances}
        names = [
            plan.host_name(self.name, node.alias, cluster.template)
            for node in plan.whole_cluster(cluster.template)
        ]
        free = [name for name in names if name not in taken]
        for instance, alias in zip(nameless, free, strict=False):
            self.ec2.tag([instance.id], tags_of_node(self.name, alias))
        return cluster.refreshed() if nameless else cluster

    def restart(self, *, set_up_too: bool = True) -> Outcome:
        """Reboot all running nodes and set them up."""
        cluster = find(self.ec2, self.config, self.name)
        with contextlib.closing(cluster), self.report_cost_on_error():
            nodes = cluster.nodes
            if not nodes:
                raise ClusterError(
                    f"no node of cluster '{self.name}' is running ({cluster.state})",
                    f"Start it: starcluster start -x {self.name}",
                )
            self._hook(cluster, "on_restart")
            for alias, why in failures_of(nodes, mark_boot).items():
                self.progress(alias, f"rebooting despite an error: {why}")
            cluster.close()
            self.ec2.reboot([node.id for node in nodes])
            self.progress("", "rebooting")
            failed = failures_of(nodes, lambda node: wait_for_reboot(node, self.timeouts.ssh_s))
            rebooted = [node for node in nodes if node.alias not in failed]
            if not set_up_too:
                return Outcome(ready=tuple(node.alias for node in rebooted), failed=failed)
            return self._set_up(cluster, rebooted, failed)

    def stop(self, *, terminate_unstoppable: bool = False) -> list[str]:
        """Stop all nodes; return the aliases of the stopped ones. Disks remain and cost money."""
        cluster = find(self.ec2, self.config, self.name)
        spot = [instance for instance in cluster.instances if instance.is_spot]
        if spot and not terminate_unstoppable:
            raise ClusterError(
                f"spot instances cannot be stopped: {aliases(spot)}",
                f"Terminate them and stop the other nodes: starcluster stop -t {self.name}",
            )
        running = [
            instance for instance in cluster.instances if instance.state in ("pending", "running")
        ]
        stopped = [instance for instance in running if instance not in spot]
        with self.report_cost_on_error():
            self._shutdown(cluster)
            if spot:
                self.ec2.terminate([instance.id for instance in spot])
            if stopped:
                self.ec2.stop([instance.id for instance in stopped])
                wait_for(self.ec2, [instance.id for instance in stopped], "stopped", GONE_S)
        return [instance.alias for instance in stopped]

    def _bring_up(self, launched: Sequence[Instance], relaunch: Relaunch | None = None) -> Outcome:
        running, failed = self._wait_running(launched)
        require_master(failed)
        cluster = Cluster(self.name, running, self.ec2, self.config)
        with contextlib.closing(cluster):
            if cluster.template.volumes:
                attach(self.ec2, cluster.template.volumes, cluster.master.instance, self.progress)
            failed |= self._connect(cluster.nodes)
            self._unregistered |= set(failed)
            reached = [node for node in cluster.nodes if node.alias not in failed]
            outcome = self._set_up(cluster, reached, failed)
        return self._handle_bad_nodes(outcome, launched, relaunch)

    def _set_up(
        self, cluster: Cluster, nodes: Sequence[Node], failed: Mapping[str, str]
    ) -> Outcome:
        require_master(failed)
        result = set_up(nodes, cluster.template, plugins=cluster.plugins, progress=self.progress)
        return Outcome(ready=result.ready, failed={**failed, **result.failed})
