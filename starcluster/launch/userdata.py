"""Build the user data for cloud-init: the host key of a launch and the user's scripts.

The private key is only in the user data, never in a log, an argument or a tag. The public key is a
tag of the instance, so every machine with access to the cluster can verify its nodes. After the
first login ``setup.host_key`` replaces the key.
"""

from __future__ import annotations

import email.policy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path, PurePath

from starcluster.config.template import Template
from starcluster.errors import ConfigError

LIMIT = 16384
"""Most bytes of user data that EC2 accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """An SSH host key; ``public`` as in ``ssh_host_ed25519_key.pub``, ``private`` as PEM."""

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


def user_data(
    host_key: HostKey, scripts: Mapping[str, str] | None = None, *, login_key: str = ""
) -> str:
    """Return the user data that EC2 passes to cloud-init.

    Args:
        login_key: Public key that can log in, in addition to the key pair of the instance.
        scripts: Texts by path, each with a ``#!`` line. cloud-init runs them one after another as
            root at the first boot.

    Raises:
        ConfigError: The user data is too long, or a script has no ``#!`` line.
    """
    config = "#cloud-config\n" + json.dumps(
        {
            "disable_root": False,
            # Otherwise Debian's images rewrite /etc/hosts at each boot, without the nodes.
            "manage_etc_hosts": False,
            "ssh_deletekeys": True,
            "ssh_keys": {
                "ed25519_private": host_key.private,
                "ed25519_public": host_key.public + "\n",
            },
            **({"ssh_authorized_keys": [login_key]} if login_key else {}),
        }
    )
    text = _parts([("cloud-config", "host-key", config), *_script_parts(scripts or {})])
    if len(text.encode()) > LIMIT:
        raise ConfigError(
            f"the user data scripts are too long: {len(text.encode())} bytes, EC2 accepts {LIMIT}",
            "Download the rest from a script, or use a plugin.",
        )
    return text


def _script_parts(scripts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    for path, text in scripts.items():
        if not text.startswith("#!"):
            raise ConfigError(
                f"the user data script {path} does not start with #!",
                "Name its interpreter in the first line, such as #!/bin/bash",
            )
    # cloud-init runs scripts in the order of their file names and drops duplicate names.
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


def scripts_of(template: Template) -> dict[str, str]:
    """Return the text of the user's scripts by path. Raises ConfigError."""
    scripts = {}
    for path in template.userdata_scripts:
        try:
            scripts[str(path)] = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read user data script {path}: {error}") from error
    return scripts
