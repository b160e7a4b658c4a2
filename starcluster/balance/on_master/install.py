"""Install the balancer on the master of a cluster, and remove it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata

from starcluster.balance.on_master import service
from starcluster.balance.on_master.access import Access
from starcluster.balance.on_master.payload import Payload, pack
from starcluster.balance.on_master.service import Installed
from starcluster.balance.on_master.unit import CONFIG, CURRENT, KEY, PROGRAM, unit_text
from starcluster.cluster.cluster import Cluster
from starcluster.config.portable import Target
from starcluster.errors import ClusterError, CommandTimeout
from starcluster.launch import groups
from starcluster.launch.claim.process import this_process
from starcluster.launch.ssh_access import rules_of
from starcluster.setup.hooks import FOLDER as PLUGINS

Progress = Callable[[str, str], None]
CHECK_S = 300.0
"""Timeout for AWS to give the master its role."""
_PAUSE_S, _ONE_CHECK_S = 5.0, 120.0
_WRONG_INPUT = 2


def install(
    cluster: Cluster, options: Sequence[str], access: Access, *, progress: Progress
) -> None:
    """Install the balancer, or replace the one that is there; a rerun continues.

    The unit starts only after a first check on the master with its own role has succeeded.

    Args:
        options: Of ``loadbalance``, for the unit.

    Raises:
        ClusterError: The master cannot run it, or the check failed.
        PermissionDenied: These credentials cannot make the role.
    """
    master = cluster.master
    service.require_able(master, cluster.name)
    access.check()
    payload = payload_of(cluster, options)
    # The role cannot open ports.
    groups.complete(cluster.ec2, access.group(), rules_of(cluster.template, ""))
    progress("master", f"giving it the role {access.profile}")
    access.give()
    progress("master", "copying the program")
    release = service.copy(master, payload)
    service.activate(master, release)
    progress("master", "checking the cluster from there")
    check(cluster, options)
    service.start(master, release)


def payload_of(cluster: Cluster, options: Sequence[str]) -> Payload:
    """Return the program with the config of one cluster, without credentials of the user."""
    template = cluster.template
    target = Target(
        cluster=cluster.name, region=cluster.ec2.region, key_location=KEY, folder=CURRENT
    )
    config = cluster.config.for_master(template, cluster.origin.overrides, target)
    about = Installed(
        state="",
        version=metadata.version("starmint"),
        options=tuple(options),
        by=this_process()[1].rpartition(" (")[0],
        at=datetime.now(UTC),
    )
    extra: Mapping[str, bytes] = {
        "config": config.text.encode(),
        "unit": unit_text(cluster.name, options).encode(),
        service.INSTALLED: service.described(about),
        **{path.removeprefix(f"{CURRENT}/"): data for path, data in config.files.items()},
    }
    modules = tuple(type(plugin.setup).__module__ for plugin in cluster.plugins)
    return pack(extra, PLUGINS.expanduser(), modules)


def check(
    cluster: Cluster,
    options: Sequence[str],
    *,
    limit_s: float = CHECK_S,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Run one check on the master that changes nothing; retry while its role is new.

    Raises:
        ClusterError: The check failed; has its last lines.
    """
    deadline = time.monotonic() + limit_s
    argv = [PROGRAM, "-c", CONFIG, "loadbalance", *options, "--dry-run", cluster.name]
    while True:
        try:
            answer = cluster.master.ssh.run(argv, timeout_s=_ONE_CHECK_S)
            words = answer.stderr.strip() or answer.stdout.strip()
        except CommandTimeout as error:
            answer, words = None, error.what
        if answer is not None and answer.status == 0:
            return
        final = answer is not None and answer.status == _WRONG_INPUT
        if final or time.monotonic() > deadline:
            raise ClusterError(
                f"the balancer does not work on the master: {words}",
                "Fix this and rerun the command, or remove what it installed: "
                f"starcluster balance --uninstall {cluster.name}",
            )
        sleep(_PAUSE_S)


def uninstall(cluster: Cluster, access: Access) -> list[str]:
    """Stop and remove the balancer and its role; return what was removed."""
    removed = ["the systemd unit"] if service.remove(cluster.master) else []
    return removed + access.take()
