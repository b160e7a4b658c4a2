"""Add nodes to a running cluster, remove nodes, and replace failed nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.operation import ClusterOperation, Outcome, price_now
from starcluster.config.template import Template
from starcluster.errors import InputError, StarClusterError
from starcluster.launch import plan
from starcluster.launch.hold import Held, take
from starcluster.launch.launcher import Launcher
from starcluster.launch.plan import Planned
from starcluster.launch.preflight import AwsInventory
from starcluster.launch.survey import gather
from starcluster.logger import log
from starcluster.model import is_master
from starcluster.setup.run import SetupResult, add_nodes, remove_nodes

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
        held = take(self.ec2, self.name, "addnode", hosts, progress=self.progress)
        with contextlib.ExitStack() as stack:
            stack.enter_context(held)
            cluster = find(self.ec2, self.config, self.name)
            stack.enter_context(contextlib.closing(cluster))
            nodes = self._free(nodes, template, held, renumber=renumber)
            launcher = self._launcher_of(cluster, nodes, template, inventory)
            stack.enter_context(self.report_cost_on_error())
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
        if inventory is not None:
            launcher.check(nodes)
        self.launcher = launcher
        return launcher

    def _free(
        self, nodes: Sequence[Planned], template: Template, held: Held, *, renumber: bool
    ) -> Sequence[Planned]:
        """Return ``nodes`` with aliases that are still free."""
        found = self.ec2.instances(cluster=self.name)
        names = {instance.alias for instance in found} | held.taken
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
        self, aliases: Sequence[str], *, keep: bool = False, force: bool = False
    ) -> list[str]:
        """Remove nodes from the cluster; terminate them unless ``keep``; return their aliases.

        Args:
            force: Terminate the nodes even if the master is not reachable.
        """
        cluster = find(self.ec2, self.config, self.name)
        removed = [instance for instance in cluster.instances if instance.alias in aliases]
        nodes = [cluster.node_of(instance) for instance in removed]
        remaining = [node for node in cluster.nodes if node.alias not in aliases]
        with self.report_cost_on_error():
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
                log.warning("cannot update the cluster, removing nodes anyway: %s", error.what)
            finally:
                cluster.close()
            if not keep:
                self.ec2.terminate([instance.id for instance in removed])
        return [instance.alias for instance in removed]

    def _set_up_new(
        self, cluster: Cluster, launched: Sequence[Instance], relaunch: Relaunch | None
    ) -> Outcome:
        running, failed = self._wait_running(launched)
        new = [cluster.node_of(instance) for instance in running]
        failed |= self._connect(new)
        self._unregistered |= set(failed)
        reached = [node for node in new if node.alias not in failed]
        ids = {instance.id for instance in launched}
        old = [node for node in cluster.nodes if node.id not in ids]
        result = SetupResult(ready=())
        if reached:
            result = add_nodes(
                reached, old, cluster.template, plugins=cluster.plugins, progress=self.progress
            )
        failed |= result.failed
        for node in new:
            node.close()
        outcome = Outcome(ready=result.ready, failed=failed)
        return self._handle_bad_nodes(outcome, launched, relaunch)

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
        if ids := [instance.id for instance in bad if instance.alias in self._unregistered]:
            self.ec2.terminate(ids)
