"""Log in to nodes with ssh of this machine, which verifies the host key of the node."""

from __future__ import annotations

import os
import re
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
from starcluster.launch.ssh_access import why_no_answer
from starcluster.logger import log
from starcluster.model import TAG_HOST_KEY
from starcluster.node.host_keys import host_keys, split
from starcluster.node.tunnel import Forwarding

if TYPE_CHECKING:
    from starcluster.cli.app import App

KNOWN_HOSTS = Path("~/.starcluster/known_hosts")
_CONNECT_S = 15
_FORWARDED_S = 60  # until the greeting of the node's sshd
_SSH_FAILED = 255
_LITERAL = re.compile(r"[^\s*?\['\"\\$`|&;<>(){}~]*[\s*?\[][^'\"\\$`|&;<>(){}~]*")


def ssh_argv(
    instance: Instance,
    *,
    user: str,
    key: Path,
    known_hosts: Path,
    flags: Sequence[str] = (),
    command: Sequence[str] = (),
    way: Forwarding | None = None,
) -> list[str]:
    """Return the command line of ssh; the shell of the node interprets ``command``.

    Args:
        way: How to reach the instance; None for a direct connection.
    """
    host = instance.private_ip if way else instance.public_ip or instance.private_ip
    options = {
        "HostKeyAlias": instance.id,
        "UserKnownHostsFile": shlex.quote(str(known_hosts)),
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "ConnectTimeout": str(_FORWARDED_S if way else _CONNECT_S),
        "ServerAliveInterval": "30",
        "LogLevel": "ERROR",
    }
    argv = ["ssh", "-i", str(key), *flags]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    if way:
        tunnel = shlex.join(way.argv).replace("%", "%%")
        argv += ["-o", f"ProxyCommand={tunnel}"]
    argv += ["-l", user, "--", host]
    if command:  # in a login shell, which has Grid Engine on its path
        argv.append(f"exec bash -lc {shlex.quote(command_line(command))}")
    return argv


def command_line(words: Sequence[str]) -> str:
    """Return the command that the shell of the node interprets.

    One word is a command line. Of several words, those with spaces or ``*?[`` and without other
    characters of a shell keep these, so that ``qstat -u '*'`` does not name the node's files.
    """
    if len(words) == 1:
        return words[0]
    return " ".join(shlex.quote(word) if _LITERAL.fullmatch(word) else word for word in words)


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
        raise MissingExtra("ssh is not installed on this machine", "Install the OpenSSH client.")
    way = cluster.way_to(instance)
    if way:
        way.check()
    argv = ssh_argv(
        instance,
        user=user,
        key=cluster.template.key.location,
        known_hosts=remember(instance),
        flags=flags,
        command=command,
        way=way,
    )
    status = subprocess.run(argv, check=False, env=way.environment() if way else None).returncode
    if status == _SSH_FAILED and not way:
        why, fix = why_no_answer(cluster.ec2, cluster.name, instance)
        if why:
            log.warning("%s: %s\n%s", instance.alias, why, fix)
    return status


def remember(instance: Instance) -> Path:
    """Write the host key of an instance to a known_hosts file; return its path."""
    keys = host_keys(instance)
    if not keys:
        raise NodeError(
            f"{instance.alias or instance.id}: cannot verify the host key: "
            f"the instance has no tag {TAG_HOST_KEY}",
            "Another program may have started it. Log in with ssh instead of starcluster.",
            alias=instance.alias,
        )
    folder = KNOWN_HOSTS.expanduser() / instance.cluster
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / instance.id
    temporary = folder / f".{instance.id}.{os.getpid()}"
    temporary.write_text("".join(f"{instance.id} {key}\n" for key in split(keys)))
    temporary.replace(path)
    return path


def forget(tag: str) -> None:
    """Delete the known_hosts files of a cluster that was terminated."""
    check_name(tag)
    shutil.rmtree(KNOWN_HOSTS.expanduser() / tag, ignore_errors=True)
