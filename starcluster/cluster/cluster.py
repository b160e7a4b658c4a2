"""A cluster, read from the tags of its EC2 instances; this machine stores no state of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.cluster.setting_up import SettingUp
from starcluster.cluster.way import Agents, way_to
from starcluster.config.config import Config
from starcluster.config.template import Template
from starcluster.errors import ClusterError, InputError, NodeError, NoInstances, did_you_mean
from starcluster.launch import plan
from starcluster.launch.claim.claims import busy
from starcluster.launch.claim.current import current
from starcluster.launch.origin import Origin, origin_of
from starcluster.launch.ssh_access import why_no_answer
from starcluster.model import MASTER, TAG_CLUSTER, TAG_HOST_KEY, group_name, is_master
from starcluster.node.host_keys import host_keys
from starcluster.node.node import Node
from starcluster.node.shell import Shell
from starcluster.node.tunnel import Forwarding
from starcluster.setup.hooks import LoadedPlugin, load_plugins

CONNECT_S = 10.0
SESSION_S = 30.0  # the AWS CLI alone takes seconds to start


class Cluster:
    """The instances of one cluster at the time of listing."""

    def __init__(self, name: str, instances: Iterable[Instance], ec2: Ec2, config: Config) -> None:
        self.name, self.ec2, self.config = name, ec2, config
        self.instances = sorted(instances, key=_by_rank)

    def refreshed(self) -> Cluster:
        """Return the cluster with its current instances."""
        return Cluster(self.name, self.ec2.instances(cluster=self.name), self.ec2, self.config)

    @property
    def state(self) -> str:
        """The states of its instances, joined by slashes."""
        return "/".join(sorted({instance.state for instance in self.instances}))

    @cached_property
    def origin(self) -> Origin:
        """Template and overrides of the cluster. Raises ClusterError if its tags have none."""
        for instance in self.instances:
            found = origin_of(instance.tags)
            if found is not None:
                return found
        raise ClusterError(
            f"the instances of cluster '{self.name}' have no template in their tags",
            "Another program may have started them. "
            f"Terminate them: starcluster terminate {self.name}",
        )

    @cached_property
    def template(self) -> Template:
        """The template of the cluster with the options of its start."""
        # The config of the master includes the options: their paths are on another machine.
        overrides = {} if self.is_here else self.origin.overrides
        return self.config.template(self.origin.template, overrides)

    @property
    def is_here(self) -> bool:
        """Whether this machine is its master."""
        return self.config.globals.master_of == self.name

    @cached_property
    def plugins(self) -> list[LoadedPlugin]:
        """The plugins of its template."""
        return load_plugins(self.template.plugins)

    @cached_property
    def nodes(self) -> list[Node]:
        """Nodes of the running instances, the master first."""
        return [
            self.node_of(instance) for instance in self.instances if instance.state == "running"
        ]

    def node_of(self, instance: Instance) -> Node:
        """Return the node of an instance; its connection verifies the host key."""
        return Node(instance, self.shell, self.ec2)

    @property
    def master(self) -> Node:
        """The master. Raises ClusterError if it does not run."""
        return self.node(MASTER)

    def node(self, name: str) -> Node:
        """Return a running node by its alias, instance id or address."""
        for node in self.nodes:
            instance = node.instance
            prefixed = plan.host_name(self.name, name, self.template)
            if name in (
                node.alias,
                instance.id,
                instance.private_ip,
                instance.public_ip,
                instance.public_dns,
            ):
                return node
            if node.alias == prefixed:
                return node
        stopped = [instance for instance in self.instances if instance.alias == name]
        if stopped:
            raise ClusterError(
                f"{name} of cluster '{self.name}' is {stopped[0].state}",
                f"Start it: starcluster start -x {self.name}",
            )
        aliases = [node.alias for node in self.nodes]
        what = f"no node '{name}' in cluster '{self.name}'"
        raise InputError(what, did_you_mean(name, aliases) or f"Nodes: {', '.join(aliases)}.")

    def shell(self, instance: Instance, user: str = "root") -> Shell:
        """Return a connection to an instance; it opens at first use."""
        host_key = host_keys(instance)
        if not host_key:
            raise NodeError(
                f"{instance.alias}: cannot verify the host key: tag {TAG_HOST_KEY} is missing",
                "Replace the node: starcluster removenode, then starcluster addnode",
                alias=instance.alias,
            )
        way = self.way_to(instance)
        private = self.is_here or way
        host = instance.private_ip if private else instance.public_ip or instance.private_ip
        return Shell(
            host,
            user=user,
            key=self.template.key.location,
            host_key=host_key,
            timeout_s=SESSION_S if way and self.template.ssh_via else CONNECT_S,
            name=instance.alias,
            tunnel=way,
            no_answer=lambda: why_no_answer(self.ec2, self.name, instance),
        )

    def way_to(self, instance: Instance) -> Forwarding | None:
        """Return how to reach an instance; None for a direct connection."""
        if self.is_here:  # the master reaches its nodes
            return None
        return way_to(self.ec2, self.template, self._agents, instance)

    @cached_property
    def _agents(self) -> Agents:
        return Agents(self.ec2, [each.id for each in self.instances])

    def setting_up(self) -> SettingUp:
        """Return a note on the master that this command sets up nodes; a context manager."""
        master = self.master
        return SettingUp(master.ssh, lambda: self.shell(master.instance))

    def close(self) -> None:
        """Close all connections."""
        for node in self.__dict__.get("nodes", ()):
            node.close()


def all_clusters(ec2: Ec2, config: Config) -> list[Cluster]:
    """Return all clusters of the region, sorted by name."""
    by_name: dict[str, list[Instance]] = {}
    for instance in ec2.instances(cluster="*"):
        by_name.setdefault(instance.tags[TAG_CLUSTER], []).append(instance)
    return [Cluster(name, found, ec2, config) for name, found in sorted(by_name.items())]


def find(ec2: Ec2, config: Config, name: str) -> Cluster:
    """Return a cluster by name. Raises ClusterError, or InputError for an invalid name."""
    plan.check_name(name)
    found = current_instances(ec2, name)
    if found:
        return Cluster(name, found, ec2, config)
    names = [cluster.name for cluster in all_clusters(ec2, config)]
    if ec2.security_groups(group_name(name)):
        raise NoInstances(
            f"cluster '{name}' has no instances, only its security group is left",
            f"Remove it: starcluster terminate {name}",
        )
    hint = did_you_mean(name, names) or "List the clusters: starcluster listclusters"
    raise ClusterError(f"cluster '{name}' does not exist in {ec2.region}", hint)


def current_instances(ec2: Ec2, name: str) -> list[Instance]:
    """Return the instances of a cluster; wait until AWS lists a change just before.

    Raises:
        ClusterError: None exists, because another command is launching them.
    """
    claim, found = current(ec2, name)
    if not found and claim is not None and claim.active and not claim.mine:
        raise busy(claim)
    return found


def only_running(ec2: Ec2, config: Config) -> Cluster:
    """Return the only running cluster. Raises ClusterError if none or several run."""
    running = [
        cluster
        for cluster in all_clusters(ec2, config)
        if any(instance.state == "running" for instance in cluster.instances)
    ]
    if len(running) == 1:
        return running[0]
    if not running:
        raise ClusterError(
            f"no cluster is running in {ec2.region}", "Start one: starcluster start NAME"
        )
    names = ", ".join(cluster.name for cluster in running)
    what = f"{len(running)} clusters are running in {ec2.region}: {names}"
    raise ClusterError(what, "Name one of them.")


def aliases(instances: Sequence[Instance]) -> str:
    """Return the aliases of instances as text for messages."""
    return ", ".join(instance.alias or instance.id for instance in instances)


def _by_rank(instance: Instance) -> tuple[bool, str, str]:
    return (not is_master(instance.alias), instance.alias, instance.id)
