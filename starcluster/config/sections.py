"""All sections of the config file except ``[cluster]``, with the declarations of their keys."""

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
            "Template that ``start`` uses without ``-c``. Not needed if the config has only one.",
            example="gpu",
        ),
    )
    refresh_interval: int = field(
        default=30,
        metadata=setting(
            whole(1),
            "Accepted for config files of the original, and ignored: the intervals are fixed.",
            example="60",
            unit="seconds",
        ),
    )
    enable_experimental: bool = field(
        default=False,
        metadata=setting(
            boolean,
            "Accepted for config files of the original, and ignored: no command is experimental.",
            example="true",
        ),
    )
    master_of: str = field(
        default="",
        metadata=setting(
            text,
            "``balance --install`` writes this into the config of the master: the machine is the "
            "master of this cluster. It connects to the nodes by their private addresses.",
            example="gpucluster",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    """``[aws info]``; environment variables override it, and its repr hides secrets."""

    aws_region_name: str = field(
        default="",
        metadata=setting(
            matching(r"[a-z]{2,}(-[a-z]+)+-\d", "expected a region such as us-east-1"),
            "Use this AWS region.",
            example="us-east-1",
            unset=f"the region of the AWS settings, otherwise {DEFAULT_REGION}",
        ),
    )
    aws_profile: str = field(
        default="",
        metadata=setting(
            text,
            "Use this profile of ``~/.aws/config``.",
            example="work",
            unset="the profile of the AWS settings",
        ),
    )
    aws_access_key_id: str = field(
        default="", metadata=setting(text, "Id of the access key.", example="AKIAIOSFODNN7EXAMPLE")
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
            "Number of the account. Accepted for config files of the original, and ignored: AWS "
            "reports it.",
            example="123456789012",
        ),
    )
    aws_endpoint_url: str = field(
        default="",
        metadata=setting(
            matching(r"https?://\S+", "expected an address with http:// or https://"),
            "Send the requests of all AWS services to this address, such as a test server.",
            example="http://127.0.0.1:5000",
        ),
    )
    aws_region_host: str = field(
        default="",
        metadata=setting(
            text, "Host of another cloud that has the API of EC2.", example="ec2.example.org"
        ),
    )
    aws_port: int | None = field(
        default=None,
        metadata=setting(
            whole(1, _LAST_PORT),
            "Port of ``aws_region_host``.",
            example="8773",
            unset="443, or 80 without HTTPS",
        ),
    )
    aws_ec2_path: str = field(
        default="",
        metadata=setting(
            matching(r"/\S*", "expected a path that starts with /"),
            "Path of the EC2 API on ``aws_region_host``.",
            example="/services/Cloud",
            unset="/",
        ),
    )
    aws_is_secure: bool = field(
        default=True,
        metadata=setting(boolean, "Use HTTPS for ``aws_region_host``.", example="false"),
    )
    aws_validate_certs: bool = field(
        default=True,
        metadata=setting(boolean, "Verify the TLS certificates of AWS.", example="false"),
    )
    aws_proxy: str = field(
        default="",
        metadata=setting(
            text, "Connect to AWS through this proxy host.", example="proxy.example.org"
        ),
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
    """``[key NAME]``: an EC2 key pair and its private key file."""

    name: str
    location: Path = field(
        metadata=setting(
            path,
            "Log in with this private key file, which must not have a passphrase. ``start`` and "
            "``addnode`` check that it matches the key pair before they launch anything.",
            name="key_location",
            example="~/.ssh/mykey.pem",
            option="-K, --key-location FILE",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """``[permission NAME]``: ports that are open to addresses outside the cluster."""

    name: str
    from_port: int = field(
        metadata=setting(whole(-1, _LAST_PORT), "First open port; -1 for icmp.", example="8888")
    )
    to_port: int = field(
        metadata=setting(whole(-1, _LAST_PORT), "Last open port; -1 for icmp.", example="8888")
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
            text,
            "Addresses that can connect, as a CIDR block. ``0.0.0.0/0`` is everybody.",
            example="203.0.113.0/24",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """``[plugin NAME]``: a ClusterSetup class and the arguments of its constructor."""

    name: str
    setup_class: str = field(
        metadata=setting(
            matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", "expected module.Class"),
            "Dotted name of a ClusterSetup class. All other keys are arguments of its constructor, "
            "passed as text.",
            example="starcluster.plugins.pkginstaller.PackageInstaller",
        )
    )
    arguments: Mapping[str, str] = field(default_factory=dict)
