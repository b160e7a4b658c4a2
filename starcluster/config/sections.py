"""The sections of the config file but ``[cluster]``: every key is declared here, and only here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starcluster.config.keys import setting
from starcluster.config.parsers import boolean, matching, one_of, path, text, whole

DEFAULT_REGION = "us-east-1"
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSettings:
    """``[global]``."""

    default_template: str = field(
        default="",
        metadata=setting(
            text,
            "Template of ``start`` without ``-c``. Not needed with a single template.",
            example="gpu",
        ),
    )
    refresh_interval: int = field(
        default=30,
        metadata=setting(
            whole(1),
            "Time between two checks of a state that changes.",
            example="60",
            unit="seconds",
        ),
    )
    enable_experimental: bool = field(
        default=False,
        metadata=setting(boolean, "Allow commands that are experimental.", example="true"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    """``[aws info]``, overridden by the environment. Secrets are not in its repr."""

    aws_region_name: str = field(
        default="",
        metadata=setting(
            matching(r"[a-z]{2,}(-[a-z]+)+-\d", "give a region, such as us-east-1"),
            f"The region. Default: that of boto3's settings, or else {DEFAULT_REGION}.",
            example="us-east-1",
        ),
    )
    aws_profile: str = field(
        default="", metadata=setting(text, "A profile of ``~/.aws/config``.", example="work")
    )
    aws_access_key_id: str = field(
        default="", metadata=setting(text, "Id of an access key.", example="AKIAIOSFODNN7EXAMPLE")
    )
    aws_secret_access_key: str = field(
        default="",
        repr=False,
        metadata=setting(
            text, "Secret of the access key.", example="wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
        ),
    )
    aws_session_token: str = field(
        default="",
        repr=False,
        metadata=setting(
            text, "Token of a temporary access key.", example="only-of-temporary-keys"
        ),
    )
    aws_user_id: str = field(
        default="",
        metadata=setting(
            text,
            "Number of the account. Not used: AWS reports it. Kept for files of the original.",
            example="123456789012",
        ),
    )
    aws_endpoint_url: str = field(
        default="",
        metadata=setting(
            matching(r"https?://\S+", "give an address with http:// or https://"),
            "Address of every service, such as a stand-in for tests.",
            example="http://127.0.0.1:5000",
        ),
    )
    aws_region_host: str = field(
        default="",
        metadata=setting(
            text, "Host of another cloud with EC2's interface.", example="ec2.example.org"
        ),
    )
    aws_port: int | None = field(
        default=None,
        metadata=setting(whole(1, _LAST_PORT), "Port of ``aws_region_host``.", example="8773"),
    )
    aws_is_secure: bool = field(
        default=True,
        metadata=setting(boolean, "Use HTTPS with ``aws_region_host``.", example="false"),
    )
    aws_validate_certs: bool = field(
        default=True, metadata=setting(boolean, "Check the servers' certificates.", example="false")
    )
    aws_proxy: str = field(
        default="",
        metadata=setting(text, "Host of a proxy on the way to AWS.", example="proxy.example.org"),
    )
    aws_proxy_port: int | None = field(
        default=None, metadata=setting(whole(1, _LAST_PORT), "Port of the proxy.", example="3128")
    )
    aws_proxy_user: str = field(
        default="", metadata=setting(text, "User name for the proxy.", example="me")
    )
    aws_proxy_pass: str = field(
        default="", repr=False, metadata=setting(text, "Password for the proxy.", example="secret")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """``[key NAME]``: an EC2 key pair and its private half."""

    name: str
    location: Path = field(
        metadata=setting(
            path,
            "File of the private half of the key pair NAME, without a passphrase. ``start`` and "
            "``addnode`` refuse another key's before anything is launched.",
            name="key_location",
            example="~/.ssh/mykey.pem",
            option="-K, --key-location FILE",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """``[volume NAME]``: an EBS volume, mounted on the master and shared by NFS."""

    name: str
    volume_id: str = field(
        metadata=setting(
            matching(r"vol-[0-9a-f]{8,17}", "give a volume's id, such as vol-0a1b2c3d"),
            "Id of an EBS volume, in the zone of the nodes.",
            example="vol-0123456789abcdef0",
        )
    )
    mount_path: str = field(
        metadata=setting(
            matching(r"/\S+", "give a directory, such as /data"),
            "Directory where it is mounted, on the master and by NFS on every node.",
            example="/data",
        )
    )
    partition: int | None = field(
        default=None,
        metadata=setting(
            whole(1),
            "Number of the partition. Default: the first, or the whole volume where it has none.",
            example="1",
        ),
    )
    device: str = field(
        default="",
        metadata=setting(
            matching(r"/dev/[a-z0-9]+", "give a device, such as /dev/sdz"),
            "Device name. Default: the next free one.",
            example="/dev/sdz",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """``[permission NAME]``: ports of the cluster that are open to addresses outside."""

    name: str
    from_port: int = field(
        metadata=setting(whole(-1, _LAST_PORT), "First port; -1 for icmp only.", example="8888")
    )
    to_port: int = field(
        metadata=setting(whole(-1, _LAST_PORT), "Last port; -1 for icmp only.", example="8888")
    )
    ip_protocol: str = field(
        default="tcp",
        metadata=setting(
            one_of("tcp", "udp", "icmp"), "Protocol: ``tcp``, ``udp`` or ``icmp``.", example="udp"
        ),
    )
    cidr_ip: str = field(
        default="0.0.0.0/0",
        metadata=setting(
            text, "Addresses that may connect. The default is everybody.", example="203.0.113.0/24"
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """``[plugin NAME]``: a ClusterSetup by dotted name, and the arguments of its constructor."""

    name: str
    setup_class: str = field(
        metadata=setting(
            matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", "give module.Class"),
            "A ClusterSetup by dotted name. Every other key is an argument of its constructor, "
            "as text.",
            example="starcluster.plugins.pkginstaller.PackageInstaller",
        )
    )
    arguments: Mapping[str, str] = field(default_factory=dict)
