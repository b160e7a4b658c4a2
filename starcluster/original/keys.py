"""The sections and keys of config files of the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of one section; ``ignored`` says why a key has no effect."""

    same: tuple[str, ...]
    ignored: Mapping[str, str] = field(default_factory=dict)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NO_S3 = "images are not stored in S3"
KEYS: Mapping[str, Keys] = {
    "global": Keys(
        same=("default_template", "include"),
        ignored={
            "enable_experimental": "no command is experimental",
            "refresh_interval": "the intervals are fixed",
            "web_browser": "plots are SVG files",
        },
    ),
    "aws info": Keys(
        same=_words(
            "aws_access_key_id aws_secret_access_key aws_region_name aws_region_host aws_port "
            "aws_ec2_path aws_is_secure aws_validate_certs aws_proxy aws_proxy_port "
            "aws_proxy_user aws_proxy_pass"
        ),
        ignored={
            "aws_user_id": "AWS reports the account",
            "ec2_cert": _NO_S3,
            "ec2_private_key": _NO_S3,
            "aws_s3_host": _NO_S3,
            "aws_s3_path": _NO_S3,
        },
    ),
    "key": Keys(same=("key_location",)),
    "volume": Keys(same=_words("volume_id device partition mount_path")),
    "permission": Keys(same=_words("ip_protocol from_port to_port cidr_ip")),
    "plugin": Keys(same=("setup_class",)),
    "cluster": Keys(
        same=_words(
            "keyname cluster_size cluster_user cluster_shell master_image_id "
            "master_instance_type node_image_id node_instance_type availability_zone extends "
            "volumes plugins permissions userdata_scripts disable_queue disable_cloudinit "
            "spot_bid force_spot_master subnet_id public_ips dns_prefix"
        ),
    ),
}
