"""The balancer on the master as a service: look at it, install its files, start and remove it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from starcluster.balance.on_master.payload import Payload
from starcluster.balance.on_master.unit import FOLDER, UNIT
from starcluster.errors import ClusterError, StarClusterError
from starcluster.node.node import Node
from starcluster.node.shell import Shell
from starcluster.setup.scripts import facts, script

INSTALLED = "installed"
"""File of a release that says who installed it."""
LEAST_PYTHON = (3, 11)
_DEBIAN = {"pynacl": ("nacl", "python3-nacl")}  # others: module NAME, package python3-NAME
_STEP_S, _PACKAGES_S = 120.0, 1800.0
_UNPACK = """set -eu
umask 077
mkdir -p "$1"
rm -rf "$1/.new" "$1/$2"
mkdir "$1/.new"
tar -xzf - -C "$1/.new" --no-same-owner
sync
mv "$1/.new" "$1/$2"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A balancer on a master.

    Attributes:
        state: Of the unit: ``active``, ``failed``, ``inactive`` or another.
        options: Of ``loadbalance``.
        by: User and host that installed it.
    """

    state: str
    version: str
    options: tuple[str, ...]
    by: str
    at: datetime


def require_able(master: Node, cluster: str) -> None:
    """Raise ClusterError if the master cannot run the balancer of a cluster; change nothing."""
    found = _run(master.ssh, "look", {})
    version = found["python"][0]
    if version == "none" or tuple(map(int, version.split("."))) < LEAST_PYTHON:
        has = "no Python 3" if version == "none" else f"Python {version}"
        raise ClusterError(
            f"the balancer needs Python 3.11 or later, and the master has {has}",
            "Use an image of Debian 12 or later or of Ubuntu 24.04, "
            "or run starcluster loadbalance on a machine that stays on.",
        )
    if found["systemd"] != ["yes"]:
        raise ClusterError(
            "the balancer is a systemd unit, and the master has no systemd",
            "Run starcluster loadbalance on a machine that stays on.",
        )
    if found["metadata"] != ["closed"]:
        raise ClusterError(
            "users of the master can reach the metadata service, so their jobs could use the role",
            "Remove metadata_access = all from the template, then set up the nodes: "
            f"starcluster start -x {cluster}",
        )


def copy(master: Node, payload: Payload) -> str:
    """Copy a release and install its libraries; return its name. Nothing runs it yet."""
    packed, digest = payload.archive()
    name = digest[:16]
    argv = ["sh", "-c", _UNPACK, "sh", FOLDER, name]
    master.ssh.checked(argv, stdin=packed, timeout_s=_PACKAGES_S)
    rows = (_DEBIAN.get(each, (each, f"python3-{each}")) for each in payload.compiled)
    values = {"LIBRARIES": "\n".join(" ".join(row) for row in rows)}
    _run(master.ssh, "libraries", values, parts="apt+balancer", timeout_s=_PACKAGES_S)
    return name


def activate(master: Node, release: str) -> None:
    """Make a release the current one."""
    _run(master.ssh, "activate", {"RELEASE": release})


def start(master: Node, release: str) -> None:
    """Start the current release; systemd starts it at each boot."""
    _run(master.ssh, "start", {"RELEASE": release})


def remove(master: Node) -> bool:
    """Stop and remove the balancer; return False if there was none."""
    return "removed" in _run(master.ssh, "remove", {})


def installed(ssh: Shell) -> Installed | None:
    """Return the balancer on the master; None without one."""
    found = _run(ssh, "check", {})
    if INSTALLED not in found:
        return None
    try:
        values: dict[str, Any] = json.loads(found[INSTALLED][0])
        values |= {"options": tuple(values["options"]), "at": datetime.fromisoformat(values["at"])}
        return Installed(**values | {"state": (found.get("state") or [""])[0] or "unknown"})
    except (ValueError, TypeError, KeyError) as error:
        raise StarClusterError(f"invalid file {FOLDER}/current/{INSTALLED}: {error}") from error


def described(by: Installed) -> bytes:
    """Return the content of the file that says who installed a release."""
    values = asdict(by) | {"at": by.at.isoformat(timespec="seconds")}
    del values["state"]
    return json.dumps(values).encode()


def _run(
    ssh: Shell,
    action: str,
    values: Mapping[str, str],
    *,
    parts: str = "balancer",
    timeout_s: float = _STEP_S,
) -> dict[str, list[str]]:
    given = {"FOLDER": FOLDER, "UNIT": UNIT, "RELEASE": "", "LIBRARIES": "", **values}
    text = script(parts, {"ACTION": action, **given})
    return facts(ssh.checked(["sh", "-s", "balancer"], stdin=text, timeout_s=timeout_s))
