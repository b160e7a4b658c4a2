"""A stand-in for cloud-init that supports the user data of starcluster."""

from __future__ import annotations

import email
import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.testbed.fabric import Node

NVIDIA_SMI = Path(__file__).parent / "stand_ins" / "nvidia-smi"
_REFUSED = "no-pty,command=\"echo 'Please log in as the user admin, not root.'; exit 142\" "


@dataclass
class Facts:
    """The facts of an instance that its host needs."""

    id: str
    public_key: str = ""
    user_data: bytes = b""
    gpus: int = 0
    gpus_work: bool = True
    profile: str = ""
    scripts: list[str] = field(default_factory=list)


def prepare(node: Node, facts: Facts) -> None:
    """Prepare the file system of a host once, before its first boot."""
    config = cloud_config(facts)
    host = f"ip-{node.ip.replace('.', '-')}"
    node.write("/etc/hosts", f"127.0.0.1 localhost\n{node.ip} {host}.ec2.internal {host}\n")
    node.write("/etc/resolv.conf", "")
    node.write("/etc/profile.d/image.sh", facts.profile)
    node.write("/root/.bashrc", "")  # otherwise this machine's runs at every command over SSH
    node.inside("/root/.ssh").mkdir(mode=0o700, exist_ok=True)
    keys = [facts.public_key, *config.get("ssh_authorized_keys", [])]
    before = _REFUSED if config.get("disable_root", True) else ""
    lines = "".join(f"{before}{key.strip()}\n" for key in keys if key.strip())
    node.write("/root/.ssh/authorized_keys", lines, 0o600)
    for name, text in config.get("ssh_keys", {}).items():
        kind, _, half = name.partition("_")
        suffix, mode = (".pub", 0o644) if half == "public" else ("", 0o600)
        node.write(f"/etc/ssh/ssh_host_{kind}_key{suffix}", text, mode)
    if facts.gpus:
        # Without /etc/sge-gpus a node uses nvidia-smi and tests the GPUs, but there is no CUDA.
        where = "/etc/sge-gpus" if facts.gpus_work else "/etc/broken-gpus"
        node.write(where, f"count = {facts.gpus}\n")
        node.write("/usr/local/bin/nvidia-smi", NVIDIA_SMI.read_text(), 0o755)


def start(node: Node, facts: Facts, *, first: bool) -> None:
    """Start sshd at each boot, and run the scripts of the user data at the first boot."""
    node.run("mkdir", "-p", "/run/sshd")
    if not list(node.inside("/etc/ssh").glob("ssh_host_*_key")):
        node.run("ssh-keygen", "-A")
    done = node.run("/usr/sbin/sshd")
    if done.returncode:
        raise RuntimeError(f"sshd of {node.name}: {done.stdout}{done.stderr}")
    _start_units(node)
    for script in facts.scripts if first else ():
        node.write("/var/lib/cloud/script", script, 0o700)
        node.run("sh", "-c", "/var/lib/cloud/script >> /var/log/cloud-init-output.log 2>&1")


def _start_units(node: Node) -> None:
    """Start the enabled units of starcluster, as systemd does at each boot."""
    for unit in sorted(node.inside("/etc/systemd/system").glob("*.wants/starcluster-*.service")):
        lines = node.inside(f"/etc/systemd/system/{unit.name}").read_text().splitlines()
        values = dict(line.split("=", 1) for line in lines if "=" in line)
        if values.get("Type") == "oneshot":
            done = node.run(*values["ExecStart"].split())
            if done.returncode:
                raise RuntimeError(f"{unit.name} of {node.name}: {done.stdout}{done.stderr}")
        if values.get("Type") == "exec":
            node.run("systemctl", "start", unit.name)  # the stand-in


def cloud_config(facts: Facts) -> dict[str, Any]:
    """Return the merged ``#cloud-config``; fills ``facts.scripts``."""
    merged: dict[str, Any] = {}
    for text in _parts(facts.user_data):
        if text.startswith("#cloud-config"):
            merged |= yaml.safe_load(text) or {}
        elif text.startswith("#!"):
            facts.scripts.append(text)
    return merged


def _parts(data: bytes) -> Iterator[str]:
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data.lstrip().lower().startswith((b"content-type: multipart", b"mime-version")):
        for part in email.message_from_bytes(data).walk():
            if not part.is_multipart():
                payload = part.get_payload(decode=True)
                assert isinstance(payload, bytes)
                yield payload.decode()
    else:
        yield data.decode()
