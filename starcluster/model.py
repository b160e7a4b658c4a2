"""Nouns of a cluster: what the config file asks for, and what AWS has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A type of instance in a subnet, or in a zone of the default VPC; empty for any."""

    instance_type: str
    subnet_id: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """Instances to be launched that are alike.

    Attributes:
        places: In order of preference; RunInstances takes the first only.
        group_ids: Security groups.
        user_data: Text handed to the instances; never logged.
        spot: Whether they are spot instances.
        spot_bid: Dollars per hour; None for at most the on-demand price.
        root_device: Of the image, such as ``/dev/sda1``; empty leaves the root volume as it is.
        root_size_gib: None for the image's own size.
        public_ip: None for the subnet's own setting.
        token: The same one again launches nothing more; empty for none.
    """

    image_id: str
    count: int
    places: tuple[Place, ...]
    key_name: str = ""
    group_ids: tuple[str, ...] = ()
    user_data: str = field(default="", repr=False)
    tags: Mapping[str, str] = field(default_factory=dict)
    spot: bool = False
    spot_bid: float | None = None
    placement_group: str = ""
    root_device: str = ""
    root_size_gib: int | None = None
    root_encrypted: bool = True
    public_ip: bool | None = None
    token: str = ""


# What AWS has.


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One EC2 instance.

    Attributes:
        state: ``pending``, ``running``, ``stopping``, ``stopped``, ``shutting-down``,
            ``terminated``.
        public_ip, public_dns, private_ip, private_dns: Empty where it has none (now).
        reason: Why it is in its state, in AWS's words; often empty.
    """

    id: str
    state: str
    type: str
    image_id: str
    zone: str
    private_ip: str = ""
    public_ip: str = ""
    private_dns: str = ""
    public_dns: str = ""
    key_name: str = ""
    is_spot: bool = False
    launched: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    subnet_id: str = ""
    group_names: tuple[str, ...] = ()
    spot_request_id: str = ""

    @property
    def cluster(self) -> str:
        """Name of its cluster; empty for an instance of no cluster."""
        return self.tags.get(TAG_CLUSTER, "")

    @property
    def alias(self) -> str:
        """``master``, ``node001``, ...; empty for an instance of no cluster."""
        return self.tags.get(TAG_ALIAS, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """What an instance type is, from the API.

    Attributes:
        architecture: ``x86_64`` or ``arm64``.
        gpu_name: Such as ``NVIDIA A10G``; empty without GPUs.
        placement_group: Whether it can be in a cluster placement group.
    """

    name: str
    vcpus: int
    memory_mib: int
    architecture: str
    gpus: int = 0
    gpu_name: str = ""
    gpu_memory_mib: int = 0
    spot: bool = True
    placement_group: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An AMI.

    Attributes:
        root_size_gib: Of its root volume; 0 where the image does not say.
        snapshots: What its volumes are made of; none until AWS has begun them.
    """

    id: str
    name: str
    state: str
    architecture: str
    root_device: str
    root_size_gib: int = 0
    created: str = ""
    owner: str = ""
    public: bool = False
    snapshots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EbsVolume:
    """A volume that AWS has; ``state`` as ``available``, ``in-use``."""

    id: str
    state: str
    size_gib: int
    zone: str
    type: str
    encrypted: bool
    created: datetime | None = None
    snapshot_id: str = ""
    instance_id: str = ""
    device: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A key pair that AWS has: name, fingerprint, kind (``ed25519``, ``rsa``) and public half."""

    name: str
    fingerprint: str
    type: str = ""
    public: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of EC2 and its address; ``enabled`` for this account or not."""

    name: str
    endpoint: str
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """An availability zone; ``state`` as ``available``."""

    name: str
    id: str
    state: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet; ``public_ips`` tells whether its instances get one of their own accord."""

    id: str
    vpc_id: str
    zone: str
    free_addresses: int
    public_ips: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroup:
    """A security group; ``permissions`` are those from addresses, not those among its members."""

    id: str
    name: str
    vpc_id: str
    permissions: tuple[Permission, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRequest:
    """A request for a spot instance; ``state`` as ``active``, ``open``, ``cancelled``."""

    id: str
    state: str
    status: str
    type: str
    zone: str
    bid: str = ""
    instance_id: str = ""
    created: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrice:
    """What a spot instance cost from ``time`` on, in dollars per hour."""

    type: str
    zone: str
    price: float
    time: datetime
