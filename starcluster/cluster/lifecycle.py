"""Start, restart, stop and terminate a cluster."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from starcluster.aws.instances import LIVE, SETTLE_S, settled
from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, aliases, find
from starcluster.cluster.ending import GONE_S, ClusterEnding
from starcluster.cluster.operation import Outcome
from starcluster.cluster.resize import Relaunch
from starcluster.config.template import Template
from starcluster.errors import AwsError, ClusterError, StarClusterError, Throttled, Unreachable
from starcluster.launch import plan
from starcluster.launch.claim.claims import (
    RUNNING,
    STOPPED,
    TERMINATE,
    busy,
    claim_of,
    existing,
    exists,
)
from starcluster.launch.claim.hold import Held
from starcluster.launch.groups import remove_groups
from starcluster.launch.launcher import Launcher
from starcluster.launch.names import tags_of_node
from starcluster.launch.origin import Origin
from starcluster.launch.preflight import AwsInventory
from starcluster.launch.ssh_access import admit_caller
from starcluster.launch.storage import located
from starcluster.launch.survey import gather
from starcluster.launch.volumes import attach
from starcluster.launch.wait import (
    backoff_delays,
    failures_of,
    mark_boot,
    require_master,
    wait_for,
    wait_for_reboot,
)
from starcluster.model import group_name, is_master
from starcluster.node.node import Node
from starcluster.setup.hooks import load_plugins
from starcluster.setup.run import set_up

_STATES_OF_REST = ("stopping", "stopped")


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
        context = gather(self.ec2, template, nodes, inventory, new=True)
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
        tags = dict(launcher.template.tags)
        with self.report_cost_on_error():
            with self._take("start", hosts, tags=tags, wait=False) as held:
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
            for group in [launcher.group] if launcher.group else self._groups_made(launcher):
                settled(functools.partial(self.ec2.delete_security_group, group))
                launcher.makes_group = False
            remove_groups(self.ec2, self.name)
            # AWS deletes no group with an instance in it, so nothing was launched.
            launcher.sent.clear()
            held.launched.clear()

    def _groups_made(self, launcher: Launcher) -> list[str]:
        """Return the ids of the groups of a launch that was interrupted before AWS told the id."""
        for pause in SETTLE_S if launcher.makes_group else ():
            if found := self.ec2.security_groups(group_name(self.name)):
                return [group.id for group in found]
            time.sleep(pause)
        return []

    def require_new(self) -> None:
        """Raise ClusterError if the cluster exists, or if another command starts it.

        AWS can still list the claim of a terminate that is done; the launch shows whether it is.
        """
        if found := existing(self.ec2, self.name):
            raise exists(self.ec2, self.name, found)
        claim = claim_of(self.ec2, self.name)
        if claim is not None and claim.active and claim.command != TERMINATE:
            raise busy(claim)

    def start_again(self) -> Outcome:
        """Start the stopped nodes of a cluster, and set up all nodes."""
        with self.report_cost_on_error():
            with self._take("start -x") as held:
                cluster = self._all_named(self._cluster_of(held))  # raises before anything costs
                self._start(cluster.instances, held)
            return self._bring_up(cluster.instances)

    def _start(self, instances: Sequence[Instance], held: Held) -> None:
        """Start instances, also those that AWS lists as running: the list can be late."""
        ids = [instance.id for instance in instances if not instance.is_spot]
        if asleep := [each for each in instances if each.state in _STATES_OF_REST]:
            self.progress("", f"starting {aliases(asleep)}")
        held.state = RUNNING  # already, because a start without a response can have an effect
        try:
            self._in_any_state(self.ec2.start, ids)
        except (Unreachable, Throttled):
            raise
        except AwsError:
            held.state = ""
            raise

    def _in_any_state(self, change: Callable[[Sequence[str]], None], ids: Sequence[str]) -> None:
        """Start or stop instances; wait while one is between two states."""
        left = list(ids)
        deadline = time.monotonic() + GONE_S
        for pause in backoff_delays():
            try:
                return change(left) if left else None
            except AwsError as error:
                if error.code != "IncorrectInstanceState" or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            there = {each.id for each in self.ec2.instances(left) if each.state in LIVE}
            left = [id for id in left if id in there]
        raise AssertionError

    def _all_named(self, cluster: Cluster) -> Cluster:
        """Tag instances that have no alias because their launch was interrupted."""
        taken = {instance.alias for instance in cluster.instances}
        names = [
            plan.host_name(self.name, node.alias, cluster.template)
            for node in plan.whole_cluster(cluster.template)
        ]
        free = iter(name for name in names if name not in taken)
        named = []
        for instance in cluster.instances:
            alias = instance.alias or next(free, "")
            if alias and not instance.alias:
                tags = tags_of_node(self.name, alias)
                self.ec2.tag([instance.id], tags)
                named.append(replace(instance, tags={**instance.tags, **tags}))
            else:
                named.append(instance)
        return Cluster(self.name, named, self.ec2, self.config)

    def restart(self, *, set_up_too: bool = True) -> Outcome:
        """Reboot all running nodes and set them up."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.report_cost_on_error())
            held = stack.enter_context(self._take("restart"))
            cluster = stack.enter_context(contextlib.closing(self._cluster_of(held)))
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
            held.end()
            self.progress("", "rebooting")
            failed = failures_of(nodes, lambda node: wait_for_reboot(node, self.timeouts.ssh_s))
            rebooted = [node for node in nodes if node.alias not in failed]
            if not set_up_too:
                return Outcome(ready=tuple(node.alias for node in rebooted), failed=failed)
            return self._set_up(cluster, rebooted, failed)
        raise AssertionError

    def stop(self, *, terminate_unstoppable: bool = False) -> list[str]:
        """Stop all nodes; return the aliases of the stopped ones. Disks remain and cost money."""
        cluster = find(self.ec2, self.config, self.name)
        self._exists = True
        _require_no_spot(cluster, terminate_unstoppable)
        with self.report_cost_on_error():
            self._shutdown(cluster)
            with self._take("stop") as held:
                cluster = self._cluster_of(held)  # with nodes that were added in the meantime
                _require_no_spot(cluster, terminate_unstoppable)
                spot = [instance for instance in cluster.instances if instance.is_spot]
                stopped = [instance for instance in cluster.instances if not instance.is_spot]
                running = [each for each in stopped if each.state not in _STATES_OF_REST]
                held.removed |= {instance.alias for instance in spot}
                held.state = STOPPED
                self._terminate(spot)
                last = [each.id for each in stopped if cluster.is_here and is_master(each.alias)]
                others = [each.id for each in stopped if each.id not in last]
                self._in_any_state(self.ec2.stop, others)
                if last:  # this process runs on the master and ends with it
                    held.end()
                    self._in_any_state(self.ec2.stop, last)
            wait_for(self.ec2, [instance.id for instance in stopped], "stopped", GONE_S)
        return [instance.alias for instance in running]

    def _bring_up(self, launched: Sequence[Instance], relaunch: Relaunch | None = None) -> Outcome:
        running, failed = self._wait_running(launched)
        require_master(failed)
        cluster = Cluster(self.name, running, self.ec2, self.config)
        admit_caller(self.ec2, self.name, cluster.template, cluster.master.instance)
        with contextlib.closing(cluster):
            if cluster.template.volumes:
                attach(self.ec2, cluster.template.volumes, cluster.master.instance, self.progress)
            failed |= self._connect(cluster.nodes)
            self._unregistered |= set(failed)
            reached = [node for node in cluster.nodes if node.alias not in failed]
            outcome = self._set_up(cluster, reached, failed)
            self._record_bill(cluster.master.ssh)
        return self._handle_bad_nodes(outcome, launched, relaunch)

    def _set_up(
        self, cluster: Cluster, nodes: Sequence[Node], failed: Mapping[str, str]
    ) -> Outcome:
        require_master(failed)
        with cluster.setting_up():
            template = located(self.ec2, cluster.template)
            result = set_up(nodes, template, plugins=cluster.plugins, progress=self.progress)
        return Outcome(ready=result.ready, failed={**failed, **result.failed})


def _require_no_spot(cluster: Cluster, terminate_unstoppable: bool) -> None:
    spot = [instance for instance in cluster.instances if instance.is_spot]
    if spot and not terminate_unstoppable:
        raise ClusterError(
            f"spot instances cannot be stopped: {aliases(spot)}",
            f"Terminate them and stop the other nodes: starcluster stop -t {cluster.name}",
        )
