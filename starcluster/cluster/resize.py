"""Add nodes to a running cluster, remove nodes, and replace failed nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.operation import ClusterOperation, Outcome
from starcluster.cluster.running import price_now
from starcluster.config.template import Template
from starcluster.errors import InputError, NotTaken, StarClusterError
from starcluster.launch import plan
from starcluster.launch.claim.hold import Held
from starcluster.launch.launcher import Launcher
from starcluster.launch.plan import Planned
from starcluster.launch.preflight import AwsInventory
from starcluster.launch.storage import located
from starcluster.launch.survey import gather
from starcluster.logger import log
from starcluster.model import is_master
from starcluster.setup.run import SetupResult, add_nodes, remove_nodes

Choice = Callable[[Cluster], Sequence[str]]
"""Chooses nodes of a cluster that no other command can change; returns their aliases."""
Relaunch = Callable[[str], Instance]
"""Launches a replacement instance for the node with an alias."""


class ClusterResize(ClusterOperation):
    """Changes the number of nodes of one running cluster."""

    def add(
        self,
        nodes: Sequence[Planned],
        template: Template,
        inventory: AwsInventory | None = None,
        *,
        renumber: bool = True,
    ) -> Outcome:
        """Launch ``nodes`` and set them up, all in parallel.

        Args:
            inventory: If given, check the permission to launch first.
            renumber: Give the next free number to a node whose alias another command has taken in
                the meantime; otherwise fail.

        Raises:
            InputError: The cluster would cost more than the template allows.
            CapacityError: AWS launched only some nodes. These are set up.
        """
        hosts = [plan.host_name(self.name, node.alias, template) for node in nodes]
        self._exists = True
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.report_cost_on_error())
            held = stack.enter_context(self._take("addnode", hosts, tags=dict(template.tags)))
            cluster = stack.enter_context(contextlib.closing(self._cluster_of(held)))
            nodes = self._free(nodes, template, held, renumber=renumber)
            launcher = self._launcher_of(cluster, nodes, template, inventory)
            try:
                with held:
                    launched = launcher.launch(nodes, held)
            except StarClusterError:
                if launcher.made:  # they cost money, so use them
                    self._set_up_new(cluster, launcher.made, launcher.relaunch)
                raise
            return self._set_up_new(cluster, launched, launcher.relaunch)
        raise AssertionError

    def _launcher_of(
        self,
        cluster: Cluster,
        nodes: Sequence[Planned],
        template: Template,
        inventory: AwsInventory | None,
    ) -> Launcher:
        _ = cluster.master, cluster.plugins  # raise before the launch, not after it
        context = gather(self.ec2, template, nodes, inventory)
        price = price_now(self.ec2, cluster.instances)
        plan.check_cost(template, price + plan.cost(nodes, context.on_demand, context.spot))
        launcher = Launcher(self.ec2, self.name, template, cluster.origin, context, self.progress)
        launcher.join(dollars=price.dollars, zone=cluster.master.placement)
        if cluster.is_here:  # this machine does not have the private key of the key pair
            launcher.login_key = cluster.master.ssh.public_key
        if inventory is not None:
            launcher.check(nodes)
        self.launcher = launcher
        return launcher

    def _free(
        self, nodes: Sequence[Planned], template: Template, held: Held, *, renumber: bool
    ) -> Sequence[Planned]:
        """Return ``nodes`` with aliases that are still free."""
        names = {instance.alias for instance in held.there}
        taken = {alias.removeprefix(f"{self.name}-") for alias in names}
        clash = {node.alias for node in nodes} & taken
        if not clash:
            return nodes
        if not renumber:
            what = f"node {', '.join(sorted(clash))} already exists"
            raise InputError(what, "Choose other aliases.")
        free = plan.free_aliases({*taken, *(node.alias for node in nodes)}, len(clash))
        new = dict(zip(sorted(clash), free, strict=True))
        found_free = [replace(node, alias=new.get(node.alias, node.alias)) for node in nodes]
        held.announce([plan.host_name(self.name, each.alias, template) for each in found_free])
        return found_free

    def adopt(self, aliases: Sequence[str]) -> Outcome:
        """Set up existing instances; start the stopped ones."""
        cluster = find(self.ec2, self.config, self.name)
        instances = [instance for instance in cluster.instances if instance.alias in aliases]
        stopped = [instance.id for instance in instances if instance.state == "stopped"]
        with contextlib.closing(cluster), self.report_cost_on_error():
            if stopped:
                self.ec2.start(stopped)
            return self._set_up_new(cluster, instances, None)

    def remove(
        self, chosen: Sequence[str] | Choice, *, keep: bool = False, force: bool = False
    ) -> list[str]:
        """Remove nodes from the cluster; terminate them unless ``keep``; return their aliases.

        Args:
            chosen: Aliases, or a function that chooses them.
            force: Terminate the nodes even if the master is not reachable.
        """
        self._exists = True
        with self.report_cost_on_error(), self._take("removenode") as held:
            cluster = self._cluster_of(held)
            aliases = chosen(cluster) if callable(chosen) else chosen
            removed = [instance for instance in cluster.instances if instance.alias in aliases]
            gone = set(aliases) - {instance.alias for instance in removed}
            if gone and not force:
                raise NotTaken(
                    f"cluster '{self.name}' no longer has {', '.join(sorted(gone))}; "
                    "nothing was removed",
                    f"See its nodes: starcluster listclusters {self.name}",
                )
            nodes = [cluster.node_of(instance) for instance in removed]
            remaining = [node for node in cluster.nodes if node.alias not in aliases]
            reached = True
            try:
                remove_nodes(
                    nodes,
                    [*remaining, *nodes],
                    cluster.template,
                    plugins=cluster.plugins,
                    progress=self.progress,
                )
            except StarClusterError as error:
                if not force:
                    raise
                reached = False
                log.warning("cannot update the cluster, removing nodes anyway: %s", error.what)
            finally:
                cluster.close()
            if not keep:
                held.removed |= {instance.alias for instance in removed}
                self._terminate(removed)
            if reached:
                self._record_on_master(cluster)
        return [instance.alias for instance in removed]

    def _record_on_master(self, cluster: Cluster) -> None:
        ssh = cluster.shell(cluster.master.instance)
        with contextlib.closing(ssh):
            self._record_bill(ssh)

    def _set_up_new(
        self, cluster: Cluster, launched: Sequence[Instance], relaunch: Relaunch | None
    ) -> Outcome:
        with cluster.setting_up():
            outcome = self._join(cluster, launched)
            self._record_bill(cluster.master.ssh)
        return self._handle_bad_nodes(outcome, launched, relaunch)

    def _join(self, cluster: Cluster, launched: Sequence[Instance]) -> Outcome:
        """Wait for new instances and set them up."""
        running, failed = self._wait_running(launched)
        new = [cluster.node_of(instance) for instance in running]
        failed |= self._connect(new)
        self._unregistered |= set(failed)
        reached = [node for node in new if node.alias not in failed]
        ids = {instance.id for instance in launched}
        old = [node for node in cluster.nodes if node.id not in ids]
        result = SetupResult(ready=())
        if reached:
            template = located(self.ec2, cluster.template)
            result = add_nodes(
                reached, old, template, plugins=cluster.plugins, progress=self.progress
            )
        failed |= result.failed
        for node in new:
            node.close()
        return Outcome(ready=result.ready, failed=failed)

    def _handle_bad_nodes(
        self, outcome: Outcome, launched: Sequence[Instance], relaunch: Relaunch | None
    ) -> Outcome:
        """Remove or replace failed nodes according to ``on_bad_node``.

        A bad master is reported, not replaced: the cluster cannot exist without it.
        """
        bad = [
            instance
            for instance in launched
            if instance.alias in outcome.failed and not is_master(instance.alias)
        ]
        if not bad or self.on_bad_node == "leave":
            return outcome
        self._remove_bad(bad, outcome)
        if self.on_bad_node != "replace" or relaunch is None:
            return outcome
        new = [relaunch(instance.alias) for instance in bad]
        cluster = find(self.ec2, self.config, self.name)
        with contextlib.closing(cluster):
            second = self._set_up_new(cluster, new, None)
        kept = {alias: why for alias, why in outcome.failed.items() if is_master(alias)}
        return Outcome(ready=(*outcome.ready, *second.ready), failed={**kept, **second.failed})

    def _remove_bad(self, bad: Sequence[Instance], outcome: Outcome) -> None:
        for instance in bad:
            self.progress(instance.alias, f"removing: {outcome.failed[instance.alias]}")
        registered = [
            instance.alias for instance in bad if instance.alias not in self._unregistered
        ]
        if registered:
            self.remove(registered, force=True)
        self._terminate([each for each in bad if each.alias in self._unregistered])
