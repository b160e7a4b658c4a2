"""User data: a cluster's host key and the user's scripts, for cloud-init; pure.

The private half is in user data only: never in a log, an argument or a tag. Its public half is a
tag of the instance, so that every machine that may see the cluster can verify its nodes.
"""

from __future__ import annotations

import email.policy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import PurePath

from starcluster.errors import ConfigError

TAG_HOST_KEY = "starcluster:host_key"
LIMIT = 16384
"""Bytes of user data that EC2 takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """An SSH host key; ``public`` as in ``ssh_host_ed25519_key.pub``, the private half in PEM."""

    public: str
    private: str = field(repr=False)


def new_host_key() -> HostKey:
    """Return a new ED25519 key."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
    )

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()
    ).decode()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    return HostKey(public=public.decode(), private=private)


def user_data(host_key: HostKey, scripts: Mapping[str, str] | None = None) -> str:
    """Return what EC2 hands to cloud-init.

    Args:
        scripts: Texts by path, each with its ``#!`` line; run as root at the first boot, in turn.

    Raises:
        ConfigError: Too long, or a script without ``#!``.
    """
    config = "#cloud-config\n" + json.dumps(
        {
            "disable_root": False,
            # Debian's images would rewrite /etc/hosts at each boot, without the nodes.
            "manage_etc_hosts": False,
            "ssh_deletekeys": True,
            "ssh_keys": {
                "ed25519_private": host_key.private,
                "ed25519_public": host_key.public + "\n",
            },
        }
    )
    text = _parts([("cloud-config", "host-key", config), *_script_parts(scripts or {})])
    if len(text.encode()) > LIMIT:
        raise ConfigError(
            f"the user data scripts are too long: {len(text.encode())} bytes, EC2 takes {LIMIT}",
            "Let a script fetch the rest, or do it in a plugin.",
        )
    return text


def _script_parts(scripts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    for path, text in scripts.items():
        if not text.startswith("#!"):
            raise ConfigError(
                f"the user data script {path} does not begin with #!",
                "Let its first line name what runs it, such as #!/bin/bash",
            )
    # cloud-init runs them in the order of their file names, and keeps one of each name.
    return [
        ("x-shellscript", f"{number:03d}-{PurePath(path).name}", text)
        for number, (path, text) in enumerate(scripts.items(), start=1)
    ]


def _parts(parts: Sequence[tuple[str, str, str]]) -> str:
    if len(parts) == 1:
        return parts[0][2]
    message = EmailMessage(policy=email.policy.SMTP.clone(linesep="\n"))
    message["MIME-Version"] = "1.0"
    message.make_mixed()
    for kind, name, text in parts:
        part = EmailMessage()
        part.set_content(text.encode(), maintype="text", subtype=kind, filename=name)
        message.attach(part)
    return message.as_string()
