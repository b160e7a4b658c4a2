"""What a launch asks AWS for, and what AWS has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from starcluster.config.sections import Permission
from starcluster.model import TAG_ALIAS, TAG_CLUSTER


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
    """A subnet; ``public_ips``: its instances get one by default."""

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
