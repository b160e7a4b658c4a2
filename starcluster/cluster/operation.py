"""What every change of a cluster shares: wait for instances, and report what costs on failure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.config.config import Config
from starcluster.errors import ClusterError, StarClusterError
from starcluster.launch import plan
from starcluster.launch.survey import PRICES_S
from starcluster.launch.wait import Timeouts, failures_of, wait_for
from starcluster.model import group_name
from starcluster.node.node import Node
from starcluster.threadpool import soon

Progress = Callable[[str, str], None]
BAD_NODE = ("leave", "remove", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Aliases of nodes that take jobs, and why the others do not."""

    ready: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class ClusterOperation:
    """One command's work on one cluster."""

    def __init__(
        self,
        ec2: Ec2,
        config: Config,
        name: str,
        *,
        progress: Progress = lambda alias, what: None,
        timeouts: Timeouts | None = None,
        on_bad_node: str = "leave",
    ) -> None:
        """Prepare; nothing is sent to AWS.

        Args:
            progress: Called with a node's alias, empty for the cluster, and what starts now.
            on_bad_node: One of ``BAD_NODE``: what happens to a node that fails.

        Raises:
            InputError: ``name`` cannot be the name of a cluster.
        """
        plan.check_name(name)
        self.ec2, self.config, self.name = ec2, config, name
        self.progress, self.timeouts = progress, timeouts or Timeouts()
        self.on_bad_node = on_bad_node
        self._unregistered: set[str] = set()  # failed nodes that the master does not know

    def describe_running(self) -> str:
        """Return which instances of the cluster exist and cost, and what to do with them."""
        return describe_running(self.ec2, self.name)

    @contextlib.contextmanager
    def report_cost_on_error(self) -> Iterator[None]:
        """Add to any error what of the cluster runs and costs now."""
        try:
            yield
        except KeyboardInterrupt as error:
            raise ClusterError("interrupted", self.describe_running()) from error
        except StarClusterError as error:
            error.fix = "\n".join(filter(None, [error.fix, self.describe_running()]))
            raise

    def _connect(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Wait for the SSH of all nodes; return why it failed, by alias."""
        for node in nodes:
            self.progress(node.alias, "waiting for SSH")
        return failures_of(nodes, lambda node: node.ssh.connect(wait_s=self.timeouts.ssh_s))

    def _wait_running(self, launched: Sequence[Instance]) -> tuple[list[Instance], dict[str, str]]:
        """Wait for instances; return those that run, and why the others do not, by alias."""
        for instance in launched:
            self.progress(instance.alias, "booting")
        names = {instance.id: instance.alias for instance in launched}
        found = wait_for(self.ec2, list(names), "running", self.timeouts.running_s)
        failed = {
            names[instance.id]: instance.reason or f"the instance is {instance.state}"
            for instance in found
            if instance.state != "running"
        }
        return [instance for instance in found if instance.state == "running"], failed


def describe_running(ec2: Ec2, name: str) -> str:
    """Return which instances of cluster ``name`` exist and cost, and what to do; for people."""
    try:
        instances = ec2.instances(cluster=name)
        exists = bool(instances) or bool(ec2.security_groups(group_name(name)))
    except StarClusterError:
        return f"It may be running, and cost: starcluster listclusters {name}"
    if not exists:
        return "Nothing of it runs or costs."
    if not instances:
        return (
            "No instance of it runs; only its security group is left. "
            f"Remove it: starcluster terminate {name}"
        )
    count = len(instances)
    exist = f"{count} instances of it exist" if count > 1 else "1 instance of it exists"
    names = ", ".join(instance.alias or instance.id for instance in instances)
    return (
        f"{exist} ({names}): {price_now(ec2, instances)}.\n"
        f"Go on: starcluster start -x {name}\n"
        f"Or remove it: starcluster terminate {name}"
    )


def price_now(ec2: Ec2, instances: Sequence[Instance]) -> plan.Cost:
    """Return what instances cost now, at most; waits up to ``PRICES_S`` for AWS's price list."""
    types = {instance.type for instance in instances}
    no_prices: dict[str, float] = {}
    on_demand = soon(lambda: prices.on_demand(ec2, types), within_s=PRICES_S, otherwise=no_prices)
    return plan.cost_of(instances, on_demand)
