"""``[cluster NAME]``: every key is declared here, and only here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from starcluster.config.keys import setting
from starcluster.config.parsers import (
    NodeType,
    boolean,
    dollars,
    instance_type,
    instance_types,
    matching,
    names,
    node_types,
    one_of,
    paths,
    text,
    whole,
)
from starcluster.config.sections import Key, Permission, Plugin, Volume

DEFAULT_IMAGE = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
SHELLS = ("bash", "zsh", "csh", "ksh", "tcsh", "sh", "fish")
USER_NAME = matching(r"[a-z_][a-z0-9_-]{0,31}", "give a user name: small letters, digits, - and _")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A cluster template, with all it extends and refers to; each ``help`` describes its field."""

    name: str
    key: Key
    keyname: str = field(
        metadata=setting(
            text,
            "Name of the key pair, which is a ``[key]`` section.",
            example="mykey",
            refers_to="key",
            option="-k, --keyname NAME",
        )
    )
    cluster_size: int = field(
        metadata=setting(
            whole(1),
            "Number of nodes, including the master.",
            example="3",
            option="-s, --cluster-size N",
        )
    )
    node_instance_type: tuple[NodeType, ...] = field(
        metadata=setting(
            node_types,
            "Instance type of the nodes. For several types: ``type[:image][:n], ..., "
            "type[:image]``, so that ``g5.12xlarge:2, g5.xlarge`` are two large nodes, and small "
            "ones for the rest and the master.",
            example="g5.xlarge",
            option="-i, --node-instance-type TYPE",
        )
    )
    node_image_id: str = field(
        default=DEFAULT_IMAGE,
        metadata=setting(
            text,
            "Image of the nodes. An id, a name (your own or Amazon's, the newest of that name) or "
            "an SSM parameter, which begins with ``/``. The default is AWS's Deep Learning Base "
            "AMI for Ubuntu 24.04, which has NVIDIA's driver.",
            example="ami-0123456789abcdef0",
            option="-n, --node-image-id AMI",
        ),
    )
    master_instance_type: str = field(
        default="",
        metadata=setting(
            instance_type,
            "Instance type of the master. Default: that of the last item of "
            "``node_instance_type``.",
            example="m5.large",
            option="-I, --master-instance-type TYPE",
        ),
    )
    master_image_id: str = field(
        default="",
        metadata=setting(
            text,
            "Image of the master. Default: that of the last item of ``node_instance_type``.",
            example="ami-0123456789abcdef0",
            option="-m, --master-image-id AMI",
        ),
    )
    fallback_instance_types: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            instance_types,
            "Instance types to try, in this order, where AWS has no ``node_instance_type`` free.",
            example="g4dn.xlarge, g6.xlarge",
        ),
    )
    cluster_user: str = field(
        default="sgeadmin",
        metadata=setting(
            USER_NAME,
            "Account that jobs run under.",
            example="alice",
            option="-u, --cluster-user NAME",
        ),
    )
    cluster_shell: str = field(
        default="bash",
        metadata=setting(
            one_of(*SHELLS),
            f"Login shell of ``cluster_user``: {', '.join(SHELLS[:-1])} or {SHELLS[-1]}.",
            example="zsh",
            option="-S, --cluster-shell SHELL",
        ),
    )
    availability_zone: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Availability zones in order of preference. Default: any.",
            example="us-east-1a, us-east-1b",
            option="-a, --availability-zone ZONE",
        ),
    )
    subnet_id: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            names,
            "Subnets in order of preference. Default: those of the default VPC. A subnet has its "
            "own zone, so ``availability_zone`` must not be set too.",
            example="subnet-0123456789abcdef0",
            option="-N, --subnet-id ID",
        ),
    )
    public_ips: bool | None = field(
        default=None,
        metadata=setting(
            boolean,
            "Give nodes public addresses. Default: as the subnet is set.",
            example="true",
            option="--public-ips/--no-public-ips",
        ),
    )
    spot_bid: float | None = field(
        default=None,
        metadata=setting(
            dollars,
            "Use spot instances, and pay at most this price for each. Default: on-demand.",
            example="0.60",
            unit="dollars per hour",
            option="-b, --bid DOLLARS",
        ),
    )
    force_spot_master: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Make the master a spot instance too; needs ``spot_bid``.",
            example="true",
            option="--force-spot-master/--no-spot-master",
        ),
    )
    max_hourly_cost: float | None = field(
        default=None,
        metadata=setting(
            dollars,
            "Launch nothing that makes all nodes together cost more than this.",
            example="5",
            unit="dollars per hour",
        ),
    )
    root_volume_size: int | None = field(
        default=None,
        metadata=setting(
            whole(1, 65536),
            "Size of each root volume. Default: that of the image.",
            example="200",
            unit="GiB",
        ),
    )
    root_volume_encrypted: bool = field(
        default=True, metadata=setting(boolean, "Encrypt the root volumes.", example="false")
    )
    placement_group: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Place nodes close together, for training over several of them.",
            example="true",
        ),
    )
    volumes: tuple[Volume, ...] = field(
        default=(),
        metadata=setting(
            names, "``[volume]`` sections, separated by commas.", example="data", refers_to="volume"
        ),
    )
    permissions: tuple[Permission, ...] = field(
        default=(),
        metadata=setting(
            names,
            "``[permission]`` sections, separated by commas.",
            example="web",
            refers_to="permission",
        ),
    )
    plugins: tuple[Plugin, ...] = field(
        default=(),
        metadata=setting(
            names,
            "``[plugin]`` sections, separated by commas; they run in this order.",
            example="nvidia_tune, gpu_sge",
            refers_to="plugin",
        ),
    )
    userdata_scripts: tuple[Path, ...] = field(
        default=(),
        metadata=setting(
            paths,
            "Scripts that every node runs at its first boot, in this order.",
            example="~/.starcluster/first-boot.sh",
            option="-U, --userdata-script FILE",
        ),
    )
    disable_queue: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Set up no Grid Engine.",
            example="true",
            option="-Q/-q, --disable-queue/--enable-queue",
        ),
    )
    disable_cloudinit: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Declare that the images have no cloud-init. ``start`` refuses them: nodes get their "
            "host keys by it.",
            example="true",
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
        """Return type and image of the master, both filled in where the template has them."""
        default = self.node_instance_type[-1]
        return NodeType(
            instance_type=self.master_instance_type or default.instance_type,
            image_id=self.master_image_id or default.image_id or self.node_image_id,
        )

    def types_of_nodes(self) -> tuple[NodeType, ...]:
        """Return type and image of node001, node002, ...: one fewer than ``cluster_size``."""
        count = self.cluster_size - 1
        types: list[NodeType] = []
        for item in self.node_instance_type:
            node = NodeType(
                instance_type=item.instance_type, image_id=item.image_id or self.node_image_id
            )
            types += [node] * (count - len(types) if item.count is None else item.count)
        return tuple(types[:count])
