"""The instance of a node and its cluster in EC2: a part of :class:`starcluster.node.Node`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from starcluster.aws.model import Instance, Region, SecurityGroup
from starcluster.errors import ClusterError
from starcluster.model import group_name, is_master

if TYPE_CHECKING:
    from starcluster.node.shell import Shell


class Power(Protocol):
    """The requests to EC2 that nodes make; :class:`starcluster.aws.ec2.Ec2` has more."""

    region: str

    def start(self, ids: Sequence[str]) -> object:
        """Start stopped instances."""

    def stop(self, ids: Sequence[str]) -> object:
        """Stop running instances."""

    def reboot(self, ids: Sequence[str]) -> object:
        """Reboot running instances."""

    def terminate(self, ids: Sequence[str]) -> object:
        """Terminate instances."""

    def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> object:
        """Set tags of instances."""

    def security_groups(self, name: str) -> list[SecurityGroup]:
        """Return the security groups of this name."""


class InEc2:
    """What AWS knows about one node, and requests to AWS about it."""

    alias: str
    instance: Instance
    _ec2: Power | None

    @property
    def ssh(self) -> Shell:
        """The node's connection."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection if there is one."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """Id of the instance."""
        return self.instance.id

    @property
    def instance_type(self) -> str:
        """Type of the instance, such as ``g5.xlarge``."""
        return self.instance.type

    @property
    def image_id(self) -> str:
        """Id of its AMI."""
        return self.instance.image_id

    @property
    def ip_address(self) -> str:
        """Public address; empty if it has none."""
        return self.instance.public_ip

    @property
    def private_ip_address(self) -> str:
        """Private address, which the other nodes use."""
        return self.instance.private_ip

    @property
    def dns_name(self) -> str:
        """Name or address by which this machine reaches the node."""
        instance = self.instance
        return (
            instance.public_dns or instance.public_ip or instance.private_dns or instance.private_ip
        )

    @property
    def public_dns_name(self) -> str:
        """Public name; empty if it has none."""
        return self.instance.public_dns

    @property
    def private_dns_name(self) -> str:
        """Private name, which instances of its network can resolve."""
        return self.instance.private_dns

    @property
    def private_dns_name_short(self) -> str:
        """Private name without its domain."""
        return self.instance.private_dns.partition(".")[0]

    @property
    def placement(self) -> str:
        """Availability zone."""
        return self.instance.zone

    @property
    def state(self) -> str:
        """State of the instance at the last listing."""
        return self.instance.state

    @property
    def key_name(self) -> str:
        """Name of its key pair."""
        return self.instance.key_name

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags of the instance."""
        return self.instance.tags

    @property
    def names(self) -> tuple[str, ...]:
        """The node's alias and private address."""
        return tuple(name for name in (self.alias, self.private_ip_address) if name)

    def is_master(self) -> bool:
        """Return whether this is the cluster's master."""
        return is_master(self.alias)

    def is_spot(self) -> bool:
        """Return whether this is a spot instance, which AWS can interrupt."""
        return self.instance.is_spot

    def is_instance_store(self) -> bool:
        """Return whether its root volume is not on EBS: always False."""
        return False

    def start(self) -> None:
        """Start the stopped instance."""
        self.ec2.start([self.id])

    def stop(self) -> None:
        """Stop the instance; it keeps its disks."""
        self.close()
        self.ec2.stop([self.id])

    def reboot(self) -> None:
        """Reboot the instance."""
        self.close()
        self.ec2.reboot([self.id])

    def terminate(self) -> None:
        """Terminate the instance."""
        self.close()
        self.ec2.terminate([self.id])

    # The cluster in EC2

    @property
    def ec2(self) -> Power:
        """EC2 in the region of the node. Raises ClusterError if it was opened without EC2."""
        if self._ec2 is None:
            raise ClusterError(f"{self.alias}: this node was opened without access to EC2")
        return self._ec2

    @property
    def has_ec2(self) -> bool:
        """Whether it was opened with access to EC2."""
        return self._ec2 is not None

    @property
    def region(self) -> Region:
        """Region of the node; its ``name`` is such as ``us-east-1``."""
        return Region(name=self.ec2.region, endpoint="")

    @property
    def cluster_groups(self) -> list[SecurityGroup]:
        """Security groups of the cluster; their names start with ``@sc-``."""
        return self.ec2.security_groups(group_name(self.instance.cluster))

    @property
    def parent_cluster(self) -> SecurityGroup:
        """Security group of the cluster: its name is ``@sc-`` and the name of the cluster."""
        for group in self.cluster_groups:
            return group
        name = group_name(self.instance.cluster)
        raise ClusterError(f"{self.alias}: no security group {name} in {self.region.name}")

    @property
    def key_location(self) -> str:
        """Path of the private key, on this machine, that logs in to the node."""
        return str(self.ssh.key)

    def add_tag(self, key: str, value: str = "") -> None:
        """Set a tag of the instance."""
        self.ec2.tag([self.id], {key: value})
        self.instance = replace(self.instance, tags={**self.instance.tags, key: value})
