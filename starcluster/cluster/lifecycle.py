"""The life of a cluster: start, restart, stop, terminate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from starcluster.aws.ec2 import Ec2
from starcluster.cluster.cluster import Cluster, aliases, find
from starcluster.cluster.remains import price_now, remains
from starcluster.config.config import Config
from starcluster.errors import ClusterError, StarClusterError
from starcluster.launch import plan
from starcluster.launch.groups import remove_groups, remove_groups_soon
from starcluster.launch.launcher import Launcher, survey, tags_of_node
from starcluster.launch.plan import Origin, Planned
from starcluster.launch.preflight import Facts
from starcluster.launch.volumes import attach
from starcluster.launch.wait import (
    Patience,
    failures_of,
    mark_boot,
    pauses,
    require_master,
    wait_for,
    wait_for_reboot,
)
from starcluster.logger import log
from starcluster.model import Instance, Template, group_name, is_master
from starcluster.node.node import Node
from starcluster.setup.hooks import load_plugins
from starcluster.setup.run import SetupResult, add_nodes, remove_nodes, run_hook, set_up

Progress = Callable[[str, str], None]
GONE_S = 600.0
BAD_NODE = ("leave", "remove", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Aliases of nodes that take jobs, and why the others do not."""

    ready: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class Life:
    """Starts, changes and ends one cluster."""

    def __init__(
        self,
        ec2: Ec2,
        config: Config,
        name: str,
        *,
        progress: Progress = lambda alias, what: None,
        patience: Patience | None = None,
        on_bad_node: str = "leave",
    ) -> None:
        plan.check_name(name)
        self.ec2, self.config, self.name = ec2, config, name
        self.progress, self.patience = progress, patience or Patience()
        self.on_bad_node = on_bad_node
        self._unmet: set[str] = set()  # nodes that the master was never told of

    # New, and again

    def prepare(
        self,
        template: Template,
        origin: Origin,
        description: str = "",
        *,
        check: bool = True,
        facts: Facts | None = None,
    ) -> Launcher:
        """Ask AWS whether the new cluster could be launched; nothing is.

        Args:
            check: Whether to ask for permission too.
            facts: What is known of the template already.

        Raises:
            ClusterError: One of this name exists.
            InputError: It would cost more than the template allows.
        """
        self.require_new()
        load_plugins(template.plugins)  # a plugin that is not there must not be found out later
        nodes = plan.whole_cluster(template)
        site = survey(self.ec2, template, nodes, facts)
        plan.check_cost(template, plan.cost(nodes, site.on_demand, site.spot))
        launcher = Launcher(self.ec2, self.name, template, origin, site, self.progress, description)
        if check:
            launcher.check(nodes)
        return launcher

    def create(self, launcher: Launcher, *, set_up_too: bool = True) -> Outcome:
        """Launch what was prepared, and set it up."""
        with self._told():
            try:
                made = launcher.launch(plan.whole_cluster(launcher.template))
            except StarClusterError:
                with contextlib.suppress(StarClusterError):  # the first error is the one to tell
                    if not self.ec2.instances(cluster=self.name):
                        remove_groups(self.ec2, self.name)
                raise
            if not set_up_too:
                return Outcome(ready=(), failed=self._running(made)[1])
            return self._bring_up(made, launcher.again)

    def require_new(self) -> None:
        """Raise ClusterError where the cluster exists."""
        found = self.ec2.instances(cluster=self.name)
        if found:
            states = Cluster(self.name, found, self.ec2, self.config).state
            use = "restart" if states == "running" else "start -x"
            raise ClusterError(
                f"cluster '{self.name}' already exists in {self.ec2.region} ({states})",
                f"Use it: starcluster {use} {self.name}\n"
                f"Or remove it: starcluster terminate {self.name}",
            )

    def start_again(self) -> Outcome:
        """Start the stopped nodes of a cluster, and set all up again."""
        cluster = find(self.ec2, self.config, self.name)
        cluster = self._all_named(cluster)  # raises before anything starts to cost
        stopping = [each.id for each in cluster.instances if each.state == "stopping"]
        if stopping:
            wait_for(self.ec2, stopping, "stopped", GONE_S)
        ids = [each.id for each in cluster.instances if each.state in ("stopping", "stopped")]
        with self._told():
            if ids:
                self.progress("", f"starting {aliases(cluster.instances)}")
                self.ec2.start(ids)
            return self._bring_up(cluster.instances)

    def _all_named(self, cluster: Cluster) -> Cluster:
        """Give aliases to instances whose launch was interrupted before they had one."""
        nameless = [each for each in cluster.instances if not each.alias]
        taken = {each.alias for each in cluster.instances}
        names = [
            plan.host_name(self.name, each.alias, cluster.template)
            for each in plan.whole_cluster(cluster.template)
        ]
        free = [each for each in names if each not in taken]
        for instance, alias in zip(nameless, free, strict=False):
            self.ec2.tag([instance.id], tags_of_node(self.name, alias))
        return cluster.again() if nameless else cluster

    def restart(self, *, set_up_too: bool = True) -> Outcome:
        """Reboot all running nodes, and set them up again."""
        cluster = find(self.ec2, self.config, self.name)
        with contextlib.closing(cluster), self._told():
            nodes = cluster.nodes
            if not nodes:
                raise ClusterError(
                    f"no node of cluster '{self.name}' runs ({cluster.state})",
                    f"Start it: starcluster start -x {self.name}",
                )
            self._hook(cluster, "on_restart")
            for alias, why in failures_of(nodes, mark_boot).items():
                self.progress(alias, f"is rebooted all the same: {why}")
            cluster.close()
            self.ec2.reboot([node.id for node in nodes])
            self.progress("", "rebooting")
            failed = failures_of(nodes, lambda node: wait_for_reboot(node, self.patience.ssh_s))
            well = [node for node in nodes if node.alias not in failed]
            if not set_up_too:
                return Outcome(ready=tuple(node.alias for node in well), failed=failed)
            return self._set_up(cluster, well, failed)

    # The end

    def stop(self, *, terminate_unstoppable: bool = False) -> list[str]:
        """Stop all nodes; return the aliases of those stopped. Disks stay, and cost."""
        cluster = find(self.ec2, self.config, self.name)
        spot = [each for each in cluster.instances if each.is_spot]
        if spot and not terminate_unstoppable:
            raise ClusterError(
                f"spot instances cannot be stopped: {aliases(spot)}",
                f"Terminate these and stop the others: starcluster stop -t {self.name}",
            )
        running = [each for each in cluster.instances if each.state in ("pending", "running")]
        stopped = [each for each in running if each not in spot]
        self._shutdown(cluster)
        if spot:
            self.ec2.terminate([each.id for each in spot])
        if stopped:
            self.ec2.stop([each.id for each in stopped])
            wait_for(self.ec2, [each.id for each in stopped], "stopped", GONE_S)
        return [each.alias for each in stopped]

    def terminate(self) -> list[str]:
        """End all instances of the cluster and remove its groups; return what was removed.

        What an earlier try left is removed too.
        """
        found = self.ec2.instances(
            cluster=self.name, states=("pending", "running", "stopping", "stopped", "shutting-down")
        )
        if not found and not self.ec2.security_groups(group_name(self.name)):
            find(self.ec2, self.config, self.name)  # raises, with its hint
        cluster = Cluster(self.name, found, self.ec2, self.config)
        ids = [each.id for each in found]
        with self._told():
            self._shutdown(cluster)
            if ids:
                self.progress("", f"terminating {aliases(cluster.instances)}")
                self.ec2.terminate(ids)
                wait_for(self.ec2, ids, "terminated", GONE_S)
            removed = [each.alias or each.id for each in cluster.instances]
            groups = remove_groups_soon(self.ec2, self.name, limit_s=GONE_S, pauses=pauses())
            return removed + groups

    def _shutdown(self, cluster: Cluster) -> None:
        """Call on_shutdown; a cluster that is broken ends all the same."""
        with contextlib.closing(cluster):
            try:
                self._hook(cluster, "on_shutdown")
            except StarClusterError as error:
                log.warning("on_shutdown was not called for all plugins: %s", error.what)

    def _hook(self, cluster: Cluster, hook: str) -> None:
        if not any(each.state == "running" for each in cluster.instances):
            return
        if cluster.plugins:
            run_hook(hook, cluster.plugins, cluster.nodes, cluster.template)

    # Larger and smaller

    def add(
        self, nodes: Sequence[Planned], template: Template, facts: Facts | None = None
    ) -> Outcome:
        """Launch ``nodes`` and take them in, all at once; with ``facts`` AWS is asked first."""
        cluster = find(self.ec2, self.config, self.name)
        _ = cluster.master, cluster.plugins  # what is not there must not be found out later
        site = survey(self.ec2, template, nodes, facts)
        there = price_now(self.ec2, cluster.instances)
        plan.check_cost(template, there + plan.cost(nodes, site.on_demand, site.spot))
        launcher = Launcher(self.ec2, self.name, template, cluster.origin, site, self.progress)
        launcher.join(dollars=there.dollars, zone=cluster.master.placement)
        if facts is not None:
            launcher.check(nodes)
        with contextlib.closing(cluster), self._told():
            try:
                made = launcher.launch(nodes)
            except StarClusterError:
                if launcher.made:  # they cost: let them work
                    self._take_in(cluster, launcher.made, launcher.again)
                raise
            return self._take_in(cluster, made, launcher.again)

    def take_in(self, names: Sequence[str]) -> Outcome:
        """Set up instances that are launched already, as one more time."""
        cluster = find(self.ec2, self.config, self.name)
        chosen = [each for each in cluster.instances if each.alias in names]
        stopped = [each.id for each in chosen if each.state == "stopped"]
        with contextlib.closing(cluster), self._told():
            if stopped:
                self.ec2.start(stopped)
            return self._take_in(cluster, chosen, None)

    def _take_in(
        self,
        cluster: Cluster,
        made: Sequence[Instance],
        again: Callable[[str], Instance] | None,
    ) -> Outcome:
        running, failed = self._running(made)
        new = [cluster.node_of(each) for each in running]
        failed |= self._reached(new)
        self._unmet |= set(failed)
        well = [node for node in new if node.alias not in failed]
        mine = {each.id for each in made}
        old = [node for node in cluster.nodes if node.id not in mine]
        result = SetupResult(ready=())
        if well:
            result = add_nodes(
                well, old, cluster.template, plugins=cluster.plugins, progress=self.progress
            )
        failed |= result.failed
        outcome = Outcome(ready=result.ready, failed=failed)
        for node in new:
            node.close()
        return self._after_bad_nodes(outcome, made, again)

    def remove(self, names: Sequence[str], *, keep: bool = False, force: bool = False) -> list[str]:
        """Let the cluster forget nodes, and terminate them unless ``keep``.

        Args:
            force: Terminate them also where the master cannot be told.
        """
        cluster = find(self.ec2, self.config, self.name)
        leaving = [each for each in cluster.instances if each.alias in names]
        nodes = [cluster.node_of(each) for each in leaving]
        staying = [node for node in cluster.nodes if node.alias not in names]
        with contextlib.closing(cluster):
            try:
                remove_nodes(
                    nodes,
                    [*staying, *nodes],
                    cluster.template,
                    plugins=cluster.plugins,
                    progress=self.progress,
                )
            except StarClusterError as error:
                if not force:
                    raise
                log.warning("the cluster could not be told, the nodes go: %s", error.what)
        if not keep:
            self.ec2.terminate([each.id for each in leaving])
        return [each.alias for each in leaving]

    # From instances to nodes that take jobs

    def _bring_up(
        self, made: Sequence[Instance], again: Callable[[str], Instance] | None = None
    ) -> Outcome:
        running, failed = self._running(made)
        require_master(failed)
        cluster = Cluster(self.name, running, self.ec2, self.config)
        with contextlib.closing(cluster):
            if cluster.template.volumes:
                attach(self.ec2, cluster.template.volumes, cluster.master.instance, self.progress)
            failed |= self._reached(cluster.nodes)
            self._unmet |= set(failed)
            well = [node for node in cluster.nodes if node.alias not in failed]
            outcome = self._set_up(cluster, well, failed)
        return self._after_bad_nodes(outcome, made, again)

    def _set_up(
        self, cluster: Cluster, nodes: Sequence[Node], failed: Mapping[str, str]
    ) -> Outcome:
        require_master(failed)
        result = set_up(nodes, cluster.template, plugins=cluster.plugins, progress=self.progress)
        return Outcome(ready=result.ready, failed={**failed, **result.failed})

    def _after_bad_nodes(
        self,
        outcome: Outcome,
        made: Sequence[Instance],
        again: Callable[[str], Instance] | None,
    ) -> Outcome:
        """Remove or replace bad nodes, where that is wished."""
        # Without its master a cluster is none: a bad one is named, and stays.
        bad = [each for each in made if each.alias in outcome.failed and not is_master(each.alias)]
        if not bad or self.on_bad_node == "leave":
            return outcome
        for each in bad:
            self.progress(each.alias, f"removed: {outcome.failed[each.alias]}")
        met = [each.alias for each in bad if each.alias not in self._unmet]
        if met:
            self.remove(met, force=True)
        if unmet := [each.id for each in bad if each.alias in self._unmet]:
            self.ec2.terminate(unmet)
        if self.on_bad_node != "replace" or again is None:
            return outcome
        new = [again(each.alias) for each in bad]
        cluster = find(self.ec2, self.config, self.name)
        with contextlib.closing(cluster):
            second = self._take_in(cluster, new, None)
        kept = {alias: why for alias, why in outcome.failed.items() if is_master(alias)}
        return Outcome(ready=(*outcome.ready, *second.ready), failed={**kept, **second.failed})

    def _reached(self, nodes: Sequence[Node]) -> dict[str, str]:
        for node in nodes:
            self.progress(node.alias, "waiting for SSH")
        return failures_of(nodes, lambda node: node.ssh.connect(wait_s=self.patience.ssh_s))

    def _running(self, made: Sequence[Instance]) -> tuple[list[Instance], dict[str, str]]:
        """Wait for instances; return those that run, and why the others do not."""
        for each in made:
            self.progress(each.alias, "booting")
        names = {each.id: each.alias for each in made}
        found = wait_for(self.ec2, list(names), "running", self.patience.running_s)
        failed = {
            names[each.id]: each.reason or f"the instance is {each.state}"
            for each in found
            if each.state != "running"
        }
        return [each for each in found if each.state == "running"], failed

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say what runs and costs, whatever ends the work before its time."""
        try:
            yield
        except KeyboardInterrupt as error:
            raise ClusterError("interrupted", self.remains()) from error
        except StarClusterError as error:
            error.fix = "\n".join(filter(None, [error.fix, self.remains()]))
            raise

    def remains(self) -> str:
        """Return what of the cluster is there and costs, and what to do with it."""
        return remains(self.ec2, self.name)
