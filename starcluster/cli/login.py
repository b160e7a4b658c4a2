"""Log in to nodes by this machine's own ssh, with the host key that the node was given."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster, find
from starcluster.errors import MissingExtra, NodeError
from starcluster.launch.plan import check_name
from starcluster.launch.userdata import TAG_HOST_KEY

if TYPE_CHECKING:
    from starcluster.cli.app import App

KNOWN_HOSTS = Path("~/.starcluster/known_hosts")
_CONNECT_S = 15


def ssh_argv(
    instance: Instance,
    *,
    user: str,
    key: Path,
    known_hosts: Path,
    flags: Sequence[str] = (),
    command: Sequence[str] = (),
) -> list[str]:
    """Return the command line of ssh; ``command`` is for the node's shell, as ssh has it."""
    options = {
        "HostKeyAlias": instance.id,
        "UserKnownHostsFile": shlex.quote(str(known_hosts)),
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "ConnectTimeout": str(_CONNECT_S),
        "ServerAliveInterval": "30",
        "LogLevel": "ERROR",
    }
    argv = ["ssh", "-i", str(key), *flags]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    argv += ["-l", user, "--", instance.public_ip or instance.private_ip]
    if command:  # by a login shell, which knows of Grid Engine
        argv.append(f"exec bash -lc {shlex.quote(' '.join(command))}")
    return argv


def run_ssh(
    app: App,
    tag: str,
    name: str,
    *,
    user: str,
    command: Sequence[str],
    flags: Sequence[str] = (),
) -> int:
    """Run ssh to a node of a cluster; return its exit status."""
    cluster = find(app.ec2, app.config, tag)
    return run_ssh_to(cluster, cluster.node(name).instance, user, command, flags)


def run_ssh_to(
    cluster: Cluster,
    instance: Instance,
    user: str,
    command: Sequence[str],
    flags: Sequence[str] = (),
) -> int:
    """Run ssh to an instance; return its exit status."""
    if shutil.which("ssh") is None:
        raise MissingExtra("there is no ssh on this machine", "Install OpenSSH's client.")
    argv = ssh_argv(
        instance,
        user=user,
        key=cluster.template.key.location,
        known_hosts=remember(instance),
        flags=flags,
        command=command,
    )
    return subprocess.run(argv, check=False).returncode


def remember(instance: Instance) -> Path:
    """Write the host key of an instance where ssh finds it; return that file."""
    key = instance.tags.get(TAG_HOST_KEY)
    if not key:
        raise NodeError(
            f"{instance.alias or instance.id}: its host key is not known, so it cannot be verified",
            "Was it started by another program?",
            alias=instance.alias,
        )
    folder = KNOWN_HOSTS.expanduser() / instance.cluster
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / instance.id
    beside = folder / f".{instance.id}.{os.getpid()}"
    beside.write_text(f"{instance.id} {key}\n")
    beside.replace(path)
    return path


def forget(tag: str) -> None:
    """Delete what :func:`remember` wrote of a cluster that is gone."""
    check_name(tag)
    shutil.rmtree(KNOWN_HOSTS.expanduser() / tag, ignore_errors=True)
