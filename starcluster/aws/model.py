"""Launch requests, and the resources that AWS reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from starcluster.config.sections import Permission
from starcluster.model import TAG_ALIAS, TAG_CLUSTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An instance type in a subnet, or in a zone of the default VPC; empty for any."""

    instance_type: str
    subnet_id: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A network interface; ``type`` is ``interface``, ``efa`` or ``efa-only``."""

    card: int
    device: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """A request for ``count`` identical instances.

    Attributes:
        places: In order of preference; RunInstances uses only the first.
        group_ids: Security groups.
        user_data: Text that the instances receive; never logged.
        tags: Of the instances and their volumes.
        other_tags: Of network interfaces, spot requests and fleets.
        spot: Whether to launch spot instances.
        spot_bid: Highest price in dollars per hour; None for the on-demand price.
        root_device: Root device of the image, such as ``/dev/sda1``; if empty, the root volume
            is not changed.
        root_size_gib: None for the size in the image.
        public_ip: None for the setting of the subnet.
        interfaces: Of each instance; empty for one of the usual type.
        token: Idempotency token: a second request with it launches nothing; empty for none.
        instance_profile: Name or ARN; empty for none.
        capacity_reservation: Id, ARN of a resource group, ``open`` or ``none``; empty for AWS's
            default.
        capacity_block: Whether the reservation is a Capacity Block.
        metadata_hops: Hops that responses of the metadata service can make.
        template_id: Launch template that the launch needs: once it is deleted, AWS refuses.
    """

    image_id: str
    count: int
    places: tuple[Place, ...]
    key_name: str = ""
    group_ids: tuple[str, ...] = ()
    user_data: str = field(default="", repr=False)
    tags: Mapping[str, str] = field(default_factory=dict)
    other_tags: Mapping[str, str] = field(default_factory=dict)
    spot: bool = False
    spot_bid: float | None = None
    placement_group: str = ""
    root_device: str = ""
    root_size_gib: int | None = None
    root_encrypted: bool = True
    public_ip: bool | None = None
    interfaces: tuple[Interface, ...] = ()
    token: str = ""
    instance_profile: str = ""
    capacity_reservation: str = ""
    capacity_block: bool = False
    template_id: str = ""
    metadata_hops: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One EC2 instance.

    Attributes:
        state: ``pending``, ``running``, ``stopping``, ``stopped``, ``shutting-down``,
            ``terminated``.
        public_ip, public_dns, private_ip, private_dns: Empty if it has none now.
        prepaid: Whether it runs in a Capacity Block, which is paid in advance.
        reason: Explanation of the state by AWS; often empty.
        made: When AWS created it; None if it no longer reports this.
        ended: When it was stopped or terminated; None if AWS does not report this.
        interrupted: Whether AWS took this spot instance back.
        profile: ARN of its instance profile; empty for none.
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
    prepaid: bool = False
    launched: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    subnet_id: str = ""
    group_names: tuple[str, ...] = ()
    spot_request_id: str = ""
    made: datetime | None = None
    ended: datetime | None = None
    interrupted: bool = False
    profile: str = ""

    @property
    def cluster(self) -> str:
        """Name of its cluster; empty outside of clusters."""
        return self.tags.get(TAG_CLUSTER, "")

    @property
    def alias(self) -> str:
        """``master``, ``node001``, ...; empty outside of clusters."""
        return self.tags.get(TAG_ALIAS, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplate:
    """A launch template; ``age_s`` is its age by the clock of AWS."""

    id: str
    name: str
    created: datetime
    age_s: float
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """Facts of an instance type.

    Attributes:
        architecture: ``x86_64`` or ``arm64``.
        gpu_name: Model such as ``NVIDIA A10G``; empty without GPUs.
        gpu_memory_mib: Of each GPU, or of the part of it.
        gpu_part: Part of a GPU that the type has, e.g. 0.125; otherwise 1.
        placement_group: Whether it can be in a cluster placement group.
        efa: Most network interfaces with EFA; 0 without EFA.
        cards: The types of interfaces of each network card; empty if AWS does not report them.
    """

    name: str
    vcpus: int
    memory_mib: int
    architecture: str
    gpus: int = 0
    gpu_name: str = ""
    gpu_memory_mib: int = 0
    gpu_part: float = 1.0
    spot: bool = True
    placement_group: bool = True
    efa: int = 0
    cards: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An AMI.

    Attributes:
        windows: Whether its system is Windows.
        root_size_gib: Size of its root volume; 0 if AWS does not report it.
        snapshots: Snapshots of its volumes; empty until AWS has started them.
    """

    id: str
    name: str
    state: str
    architecture: str
    root_device: str
    root_size_gib: int = 0
    windows: bool = False
    created: str = ""
    owner: str = ""
    public: bool = False
    snapshots: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EbsVolume:
    """An EBS volume; ``state`` is ``available``, ``in-use`` or another.

    Attributes:
        iops, throughput: As AWS reports them, throughput in MiB/s; 0 if it does not.
        stays: Whether it is attached and AWS keeps it when its instance is terminated.
    """

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
    iops: int = 0
    throughput: int = 0
    stays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticIp:
    """A public address that belongs to the account until it is released."""

    ip: str
    allocation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A key pair in AWS; ``type`` is ``ed25519`` or ``rsa``, ``public`` is the public key."""

    name: str
    fingerprint: str
    type: str = ""
    public: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceProfile:
    """An IAM instance profile; ``arn`` is empty if these credentials cannot read it."""

    name: str
    arn: str = ""
    roles: tuple[str, ...] = ()
    role_arns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The account of the credentials; ``partition`` is ``aws``, ``aws-cn`` or another."""

    account: str
    partition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """The instance profile of an instance; ``profile`` is its name."""

    id: str
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of EC2; ``enabled`` says whether this account can use it."""

    name: str
    endpoint: str
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """An availability zone; ``state`` is usually ``available``."""

    name: str
    id: str
    state: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet; ``public_ips`` says whether its instances get a public address by default.

    Attributes:
        cidr: Its private addresses, such as ``172.31.0.0/20``.
        ipv6: Whether its instances get an IPv6 address.
    """

    id: str
    vpc_id: str
    zone: str
    free_addresses: int
    public_ips: bool
    cidr: str = ""
    ipv6: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroup:
    """A security group; ``permissions`` has its rules for addresses.

    Attributes:
        joined: Whether its members can connect to each other on every port.
        joined_outbound: Whether a rule says so for the traffic that leaves them.
    """

    id: str
    name: str
    vpc_id: str
    permissions: tuple[Permission, ...] = ()
    joined: bool = False
    joined_outbound: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRequest:
    """A spot instance request; ``state`` is ``active``, ``open``, ``cancelled`` or another.

    Attributes:
        changed: When it got its ``status``.
    """

    id: str
    state: str
    status: str
    type: str
    zone: str
    bid: str = ""
    instance_id: str = ""
    created: datetime | None = None
    changed: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrice:
    """Price of a spot instance from ``time`` on, in dollars per hour."""

    type: str
    zone: str
    price: float
    time: datetime
