"""Nouns of a cluster: what the config file asks for, and what AWS has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TAG_CLUSTER = "starcluster:cluster"
TAG_ALIAS = "starcluster:alias"
TAG_ALIASES = "starcluster:aliases"
TAG_TEMPLATE = "starcluster:template"
TAG_VERSION = "starcluster:version"
TAG_NAME = "Name"
MASTER = "master"


def group_name(cluster: str) -> str:
    """Return the name of the security group of ``cluster``."""
    return f"@sc-{cluster}"


def is_master(alias: str) -> bool:
    """Tell whether ``alias`` is a master's; with dns_prefix it begins with the cluster's name."""
    return alias == MASTER or alias.endswith(f"-{MASTER}")


# What the config file asks for.


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """``[key NAME]``: an EC2 key pair and its private half."""

    name: str
    location: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """``[plugin NAME]``: a ClusterSetup by dotted name, and the arguments of its constructor."""

    name: str
    setup_class: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """``[volume NAME]``: an EBS volume, mounted on the master and shared by NFS.

    Attributes:
        device: Such as ``/dev/sdz``; empty for the next free one.
        partition: Its number; None for the first, or the whole device where it has none.
    """

    name: str
    volume_id: str
    device: str = ""
    partition: int | None = None
    mount_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """``[permission NAME]``: ports of the cluster that are open to addresses outside."""

    name: str
    ip_protocol: str = "tcp"
    from_port: int
    to_port: int
    cidr_ip: str = "0.0.0.0/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """An item of ``node_instance_type``, ``type[:image][:n]``.

    Attributes:
        image_id: Id, name or SSM parameter; empty for the template's ``node_image_id``.
        count: Nodes of this type; None in the last item, which is for all other nodes.
    """

    instance_type: str
    image_id: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """``[cluster NAME]`` with all it extends and names.

    Attributes:
        cluster_size: Nodes, the master among them.
        node_instance_type: The last item has no count.
        node_image_id, master_image_id: Id, name or SSM parameter; master's empty for the nodes'.
        master_instance_type: Empty for the last node type, which is the default one.
        availability_zone, subnet_id: In order of preference; empty for any of the default VPC.
        fallback_instance_types: Taken in this order where a node type has no capacity.
        public_ips: None for the subnet's own setting.
        spot_bid: The most to pay, in dollars per hour and node; None for on-demand nodes.
        force_spot_master: Whether the master is a spot instance too.
        dns_prefix: Whether host names begin with the cluster's name.
        root_volume_size: GiB; None for the image's own.
        placement_group: Whether nodes are placed close together.
        max_hourly_cost: Dollars per hour of all nodes, on-demand; None for no limit.
    """

    name: str
    key: Key
    keyname: str
    cluster_size: int
    node_instance_type: tuple[NodeType, ...]
    node_image_id: str = ""
    master_instance_type: str = ""
    master_image_id: str = ""
    cluster_user: str = "sgeadmin"
    cluster_shell: str = "bash"
    availability_zone: tuple[str, ...] = ()
    subnet_id: tuple[str, ...] = ()
    fallback_instance_types: tuple[str, ...] = ()
    public_ips: bool | None = None
    spot_bid: float | None = None
    force_spot_master: bool = False
    volumes: tuple[Volume, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    permissions: tuple[Permission, ...] = ()
    userdata_scripts: tuple[Path, ...] = ()
    disable_queue: bool = False
    disable_cloudinit: bool = False
    dns_prefix: bool = False
    root_volume_size: int | None = None
    root_volume_encrypted: bool = True
    placement_group: bool = False
    max_hourly_cost: float | None = None

    def type_of_master(self) -> NodeType:
        """Return type and image of the master, both filled in where the template has them."""
        default = self.node_instance_type[-1]
        return NodeType(
            instance_type=self.master_instance_type or default.instance_type,
            image_id=self.master_image_id or default.image_id or self.node_image_id,
        )

    def types_of_nodes(self) -> tuple[NodeType, ...]:
        """Return type and image of node001, node002, ...: one fewer than ``cluster_size``."""
        wanted = self.cluster_size - 1
        types: list[NodeType] = []
        for item in self.node_instance_type:
            one = NodeType(
                instance_type=item.instance_type, image_id=item.image_id or self.node_image_id
            )
            types += [one] * (wanted - len(types) if item.count is None else item.count)
        return tuple(types[:wanted])
