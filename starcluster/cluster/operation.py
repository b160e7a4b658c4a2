"""The base of all cluster commands: wait for instances, and report running costs on failure."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.instances import LIVE
from starcluster.aws.model import Instance
from starcluster.config.config import Config
from starcluster.errors import Interrupted, StarClusterError
from starcluster.launch import plan, wait
from starcluster.launch.launcher import Launcher
from starcluster.launch.survey import PRICES_S
from starcluster.launch.wait import Timeouts, failures_of, wait_for
from starcluster.model import group_name
from starcluster.node.node import Node
from starcluster.threadpool import soon

Progress = Callable[[str, str], None]
BAD_NODE = ("leave", "remove", "replace")
WAITING_FOR_SSH = "waiting for SSH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Aliases of nodes that accept jobs, and the failures of the others by alias."""

    ready: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class ClusterOperation:
    """One command on one cluster."""

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
            progress: Called with the alias of a node (empty for the cluster) and the step that
                starts.
            on_bad_node: Action for nodes that fail; one of ``BAD_NODE``.

        Raises:
            InputError: ``name`` is not a valid cluster name.
        """
        plan.check_name(name)
        self.ec2, self.config, self.name = ec2, config, name
        self.progress, self.timeouts = progress, timeouts or Timeouts()
        self.on_bad_node = on_bad_node
        self.launcher: Launcher | None = None
        self._unregistered: set[str] = set()  # failed nodes that the master does not know
        self._reporting = False

    def describe_running(self) -> str:
        """Return the existing instances of the cluster, their cost and the next commands."""
        sent = self.launcher.sent if self.launcher else {}
        return describe_running(self.ec2, self.name, sent, self.progress)

    @contextlib.contextmanager
    def report_cost_on_error(self) -> Iterator[None]:
        """Add the running instances and their cost, once, to the fix of any error."""
        if self._reporting:
            yield
            return
        self._reporting = True
        try:
            yield
        except KeyboardInterrupt as error:
            what = f"interrupted {error}".strip()
            raise Interrupted(what, self.describe_running()) from error
        except StarClusterError as error:
            error.fix = "\n".join(filter(None, [error.fix, self.describe_running()]))
            raise
        finally:
            self._reporting = False

    def _connect(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Wait until all nodes answer SSH; return the failures by alias."""
        for node in nodes:
            self.progress(node.alias, WAITING_FOR_SSH)
        return failures_of(nodes, lambda node: node.ssh.connect(wait_s=self.timeouts.ssh_s))

    def _wait_running(self, launched: Sequence[Instance]) -> tuple[list[Instance], dict[str, str]]:
        """Wait for instances; return the running ones, and the failures by alias."""
        for instance in launched:
            self.progress(instance.alias, "booting")
        names = {instance.id: instance.alias for instance in launched}
        # AWS lists an instance before its tags.
        tags = {instance.id: instance.tags for instance in launched}
        found = [
            replace(each, tags={**tags[each.id], **each.tags})
            for each in wait_for(self.ec2, list(names), "running", self.timeouts.running_s)
        ]
        failed = {
            names[instance.id]: instance.reason or f"the instance is {instance.state}"
            for instance in found
            if instance.state != "running"
        }
        return [instance for instance in found if instance.state == "running"], failed


def describe_running(
    ec2: Ec2,
    name: str,
    sent: Mapping[str, Instance | None],
    progress: Progress = lambda alias, what: None,
) -> str:
    """Return the existing instances of cluster ``name``, their cost and the next commands.

    Args:
        sent: What a launch has requested, by alias; None for a request without a response.
    """
    try:
        instances = listed(ec2, name, sent, progress)
        exists = bool(instances) or bool(ec2.security_groups(group_name(name)))
    except (StarClusterError, KeyboardInterrupt):
        return f"Instances may be running and cost money: starcluster listclusters {name}"
    if not exists:
        return "The cluster has no instances and costs nothing."
    if not instances:
        return (
            "The cluster has no instances, only its security group is left. "
            f"Remove it: starcluster terminate {name}"
        )
    count = len(instances)
    exist = f"{count} instances exist" if count > 1 else "1 instance exists"
    names = ", ".join(instance.alias or instance.id for instance in instances)
    return (
        f"{exist} ({names}): {price_now(ec2, instances)}.\n"
        f"Continue: starcluster start -x {name}\n"
        f"Or terminate the cluster: starcluster terminate {name}"
    )


def listed(
    ec2: Ec2, name: str, sent: Mapping[str, Instance | None], progress: Progress
) -> list[Instance]:
    """Return the instances of a cluster when AWS lists all of ``sent``, or after ``LAG_S``."""
    deadline = time.monotonic() + wait.LAG_S
    said = False
    for pause in wait.backoff_delays():
        found = ec2.instances(cluster=name, states=wait.ANY_STATE)
        ids = {instance.id for instance in found}
        there = {instance.alias for instance in found}
        missing = [
            alias
            for alias, made in sent.items()
            if (made.id not in ids if made else alias not in there)
        ]
        if not missing or time.monotonic() > deadline:
            unlisted = [made for made in sent.values() if made and made.id not in ids]
            return [instance for instance in found if instance.state in LIVE] + unlisted
        if not said:
            text = f"waiting up to {wait.LAG_S:g} s for AWS to list {', '.join(missing)}"
            progress("", text)
        said = True
        time.sleep(pause)
    raise AssertionError


def price_now(ec2: Ec2, instances: Sequence[Instance]) -> plan.Cost:
    """Return the most that instances cost now; waits up to ``PRICES_S`` for AWS's price list."""
    types = {instance.type for instance in instances}
    no_prices: dict[str, float] = {}
    on_demand = soon(lambda: prices.on_demand(ec2, types), within_s=PRICES_S, otherwise=no_prices)
    return plan.cost_of(instances, on_demand)
