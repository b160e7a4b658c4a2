"""``[cluster NAME]``, with the declarations of its keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from starcluster.config.keys import setting
from starcluster.config.network import NetworkKeys
from starcluster.config.parsers import (
    NodeType,
    boolean,
    directory_or_url,
    dollars,
    instance_type,
    instance_types,
    matching,
    names,
    node_types,
    one_of,
    paths,
    text,
    total_dollars,
    whole,
)
from starcluster.config.sections import Key, Permission, Plugin
from starcluster.config.volume import Volume

DEFAULT_IMAGE = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
SHELLS = ("bash", "zsh", "csh", "ksh", "tcsh", "sh", "fish")
USER_NAME = matching(
    r"[a-z_][a-z0-9_-]{0,31}", "expected a user name: lower-case letters, digits, - and _"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(NetworkKeys):
    """A cluster template, with inherited values and referenced sections filled in.

    The ``help`` of each key describes the field.
    """

    name: str
    key: Key
    keyname: str = field(
        metadata=setting(
            text,
            "Use the key pair of this ``[key]`` section.",
            example="mykey",
            refers_to="key",
            option="-k, --keyname NAME",
        )
    )
    cluster_size: int = field(
        metadata=setting(
            whole(1),
            "Launch this many nodes, including the master.",
            example="3",
            option="-s, --cluster-size N",
        )
    )
    node_instance_type: tuple[NodeType, ...] = field(
        metadata=setting(
            node_types,
            "Use this instance type for the nodes. To mix types, write ``type[:image][:n], ..., "
            "type[:image]``. For example, ``g5.12xlarge:2, g5.xlarge`` launches two large nodes; "
            "all other nodes and the master are small.",
            example="g5.xlarge",
            option="-i, --node-instance-type TYPE",
        )
    )
    node_image_id: str = field(
        default=DEFAULT_IMAGE,
        metadata=setting(
            text,
            "Boot the nodes from this image: an id, a name or an SSM parameter. A name selects the "
            "newest image of that name that your account or Amazon owns. An SSM parameter begins "
            "with ``/``. The default is the Deep Learning Base AMI of AWS for Ubuntu 24.04, which "
            "has the NVIDIA driver.",
            example="ami-0123456789abcdef0",
            option="-n, --node-image-id AMI",
        ),
    )
    master_instance_type: str = field(
        default="",
        metadata=setting(
            instance_type,
            "Use this instance type for the master.",
            example="m5.large",
            unset="the type of the last item of ``node_instance_type``",
            option="-I, --master-instance-type TYPE",
        ),
    )
    master_image_id: str = field(
        default="",
        metadata=setting(
            text,
            "Boot the master from this image.",
            example="ami-0123456789abcdef0",
            unset="the image of the last item of ``node_instance_type``",
            option="-m, --master-image-id AMI",
        ),
    )
    fallback_instance_types: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            instance_types,
            "Try these instance types, in this order, if AWS has no capacity for "
            "``node_instance_type``.",
            example="g4dn.xlarge, g6.xlarge",
            unset="no other types",
        ),
    )
    cluster_user: str = field(
        default="sgeadmin",
        metadata=setting(
            USER_NAME,
            "Run jobs as this user.",
            example="alice",
            option="-u, --cluster-user NAME",
        ),
    )
    cluster_shell: str = field(
        default="bash",
        metadata=setting(
            one_of(*SHELLS),
            f"Use this login shell for ``cluster_user``: {', '.join(SHELLS[:-1])} or {SHELLS[-1]}.",
            example="zsh",
            option="-S, --cluster-shell SHELL",
        ),
    )
    availability_zone: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Launch in these availability zones, in order of preference.",
            example="us-east-1a, us-east-1b",
            unset="any zone",
            option="-a, --availability-zone ZONE",
        ),
    )
    subnet_id: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Launch in these subnets, in order of preference. Do not set ``availability_zone`` "
            "too: a subnet has its own zone.",
            example="subnet-0123456789abcdef0",
            unset="the subnets of the default VPC",
            option="-N, --subnet-id ID",
        ),
    )
    public_ips: bool | None = field(
        default=None,
        metadata=setting(
            boolean,
            "Give the nodes public addresses.",
            example="true",
            unset="the setting of the subnet",
            option="--public-ips/--no-public-ips",
        ),
    )
    spot_bid: float | None = field(
        default=None,
        metadata=setting(
            dollars,
            "Use spot instances, and pay at most this price for each.",
            example="0.60",
            unit="dollars per hour",
            unset="on-demand instances",
            option="-b, --bid DOLLARS",
        ),
    )
    force_spot_master: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Make the master a spot instance too; requires ``spot_bid``.",
            example="true",
            option="--force-spot-master/--no-spot-master",
        ),
    )
    max_hourly_cost: float | None = field(
        default=None,
        metadata=setting(
            dollars,
            "Do not launch a node if all nodes together would cost more than this.",
            example="5",
            unit="dollars per hour",
            unset="no limit",
        ),
    )
    budget: float | None = field(
        default=None,
        metadata=setting(
            total_dollars,
            "``loadbalance`` stops the cluster before its instances have cost more than this since "
            "the start.",
            example="50",
            unit="dollars",
            unset="no limit",
        ),
    )
    idle_stop: int | None = field(
        default=None,
        metadata=setting(
            whole(1),
            "``loadbalance`` stops the cluster when no job was left for this long.",
            example="60",
            unit="minutes",
            unset="never",
        ),
    )
    root_volume_size: int | None = field(
        default=None,
        metadata=setting(
            whole(1, 65536),
            "Size of each root volume.",
            example="200",
            unit="GiB",
            unset="the size of the image",
        ),
    )
    root_volume_encrypted: bool = field(
        default=True, metadata=setting(boolean, "Encrypt the root volumes.", example="false")
    )
    placement_group: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Place the nodes close together, for training across several nodes.",
            example="true",
        ),
    )
    volumes: tuple[Volume, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Mount the volumes of these ``[volume]`` sections; separate by commas.",
            example="data",
            refers_to="volume",
        ),
    )
    permissions: tuple[Permission, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Open the ports of these ``[permission]`` sections; separate by commas.",
            example="web",
            refers_to="permission",
        ),
    )
    plugins: tuple[Plugin, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Run the plugins of these ``[plugin]`` sections in this order; separate by commas.",
            example="nvidia_tune, gpu_sge",
            refers_to="plugin",
        ),
    )
    userdata_scripts: tuple[Path, ...] = field(
        default=(),
        metadata=setting(
            paths,
            "Run these scripts on every node at its first boot, in this order; separate by commas.",
            example="~/.starcluster/first-boot.sh",
            option="-U, --userdata-script FILE",
        ),
    )
    disable_queue: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Do not set up Grid Engine.",
            example="true",
            option="-q/-Q, --disable-queue/--enable-queue",
        ),
    )
    gridengine_packages: str = field(
        default="",
        metadata=setting(
            directory_or_url,
            "Take the Grid Engine packages of Debian 12 from this directory of your machine or "
            "this URL. They replace those of an image whose own crash, as Ubuntu's do. Their "
            "SHA-256 must be that of Debian's files.",
            example="https://mirror.example.org/gridengine",
            unset="``deb.debian.org``, otherwise ``snapshot.debian.org``",
        ),
    )
    disable_cloudinit: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Declare that the images have no cloud-init. ``start`` refuses such images, because "
            "cloud-init installs the host keys of the nodes.",
            example="true",
        ),
    )
    metadata_access: str = field(
        default="root",
        metadata=setting(
            one_of("root", "all"),
            "Users of the nodes that can reach the metadata service of EC2: only ``root``, or "
            "``all``. With ``all``, every job can read the user data and use the role of the "
            "instance.",
            example="all",
        ),
    )
    dns_prefix: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Name the hosts TAG-master, TAG-node001 and so on.",
            example="true",
            option="-P/-p, --dns-prefix/--no-dns-prefix",
        ),
    )

    def type_of_master(self) -> NodeType:
        """Return the type and image of the master, with the defaults of the template filled in."""
        default = self.node_instance_type[-1]
        return NodeType(
            instance_type=self.master_instance_type or default.instance_type,
            image_id=self.master_image_id or default.image_id or self.node_image_id,
        )

    def types_of_nodes(self) -> tuple[NodeType, ...]:
        """Return the type and image of node001, node002, ...: ``cluster_size - 1`` items."""
        count = self.cluster_size - 1
        types: list[NodeType] = []
        for item in self.node_instance_type:
            node = NodeType(
                instance_type=item.instance_type, image_id=item.image_id or self.node_image_id
            )
            types += [node] * (count - len(types) if item.count is None else item.count)
        return tuple(types[:count])
