"""The base of all cluster commands: wait for instances, and report running costs on failure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.running import describe_running
from starcluster.config.config import Config
from starcluster.errors import ConfigError, InputError, Interrupted, NotTaken, StarClusterError
from starcluster.launch import plan
from starcluster.launch.claim.hold import Held, take
from starcluster.launch.launcher import Launcher
from starcluster.launch.wait import Timeouts, failures_of, wait_for
from starcluster.logger import log
from starcluster.money import record
from starcluster.node.node import Node
from starcluster.node.shell import Shell

Progress = Callable[[str, str], None]
BAD_NODE = ("leave", "remove", "replace")
_ENDED = ("shutting-down", "terminated")
WAITING_FOR_SSH = "waiting for SSH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Aliases of nodes that accept jobs, and the failures of the others by alias."""

    ready: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class ClusterOperation:
    """One command on one cluster.

    Attributes:
        gone: Aliases of new instances that AWS has terminated, such as spot instances.
        guard: Called with each claim that is taken, before the change; it can raise NotTaken.
    """

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
        self.guard: Callable[[Held], None] | None = None
        self.gone: set[str] = set()
        self._unregistered: set[str] = set()  # failed nodes that the master does not know
        self._reporting = False
        self._held: Held | None = None  # the last claim of this command
        self._exists = False  # whether the cluster had instances before this command
        self._ended: set[str] = set()  # ids of instances that AWS was asked to terminate

    def describe_running(self) -> str:
        """Return the existing instances of the cluster, their cost and the next commands."""
        return describe_running(
            self.ec2,
            self.name,
            self.launcher.sent if self.launcher else {},
            self.progress,
            record=self._held.record if self._held else None,
            ended=self._ended,
            exists=self._exists,
            makes_group=bool(self.launcher and self.launcher.makes_group),
        )

    def _take(
        self,
        command: str,
        hosts: Sequence[str] = (),
        *,
        tags: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> Held:
        """Take the claim of the cluster.

        Args:
            hosts: Aliases of the nodes that are about to be launched.
            tags: More tags of the claim. Default: those of the last claim.
            wait: Wait while another command holds the claim; otherwise fail.
        """
        progress = self.progress if wait else None
        held = take(self.ec2, self.name, command, hosts, progress=progress, tags=tags)
        self._held = held
        if self.guard is not None:
            try:
                self.guard(held)
            except BaseException:
                held.end()
                raise
        return held

    def _cluster_of(self, held: Held) -> Cluster:
        """Return the cluster as it was when its claim was taken. Raises ClusterError."""
        if not held.there:
            return find(self.ec2, self.config, self.name)
        return Cluster(self.name, held.there, self.ec2, self.config)

    def _terminate(self, instances: Sequence[Instance]) -> None:
        """Terminate instances, and note that AWS can still list them."""
        if instances:
            ids = [instance.id for instance in instances]
            self._ended |= set(ids)
            self.ec2.terminate(ids)

    @contextlib.contextmanager
    def report_cost_on_error(self) -> Iterator[None]:
        """Add the running instances and their cost, once, to the fix of an error.

        Errors that are raised before any change of the cluster do not need it.
        """
        if self._reporting:
            yield
            return
        self._reporting = True
        try:
            yield
        except KeyboardInterrupt as error:
            what = f"interrupted {error}".strip()
            raise Interrupted(what, self.describe_running()) from error
        except (InputError, ConfigError, NotTaken):
            raise
        except StarClusterError as error:
            error.fix = "\n".join(filter(None, [error.fix, self.describe_running()]))
            raise
        finally:
            self._reporting = False
            if self._held is not None:
                self._record_bill()

    def _record_bill(self, ssh: Shell | None = None) -> None:
        """Record the instances for ``starcluster cost``, on the master too if ``ssh`` reaches it.

        AWS lists a terminated instance for an hour only.
        """
        try:
            record(self.ec2, self.name, ssh=ssh)
        except (StarClusterError, OSError) as error:  # the change itself is what matters
            log.debug("cannot record the bill of %s: %s", self.name, error)

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
        self.gone |= {names[each.id] for each in found if each.state in _ENDED}
        failed = {
            names[instance.id]: instance.reason or f"the instance is {instance.state}"
            for instance in found
            if instance.state != "running"
        }
        return [instance for instance in found if instance.state == "running"], failed
