"""``starcluster balance --install`` and ``--uninstall``."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import click

from starcluster.balance.decision.decide import Limits
from starcluster.balance.on_master.access import Access
from starcluster.balance.on_master.install import install as install_on
from starcluster.balance.on_master.install import uninstall as uninstall_from
from starcluster.balance.on_master.policy import policy_text
from starcluster.balance.on_master.unit import unit_text
from starcluster.cluster.cluster import Cluster
from starcluster.commands._report import progress
from starcluster.errors import InputError


def options_of(limits: Limits, interval_s: float) -> list[str]:
    """Return the options of ``loadbalance`` that have these limits."""
    options = [
        f"--max-nodes={limits.max_nodes}",
        f"--min-nodes={limits.min_nodes}",
        f"--add_nodes_per_iter={limits.add_nodes_per_iter}",
        f"--interval={interval_s:g}",
        f"--job_wait_time={limits.job_wait_s:g}",
        f"--kill_after={limits.kill_after_s / 60:g}",
        f"--stabilization_time={limits.stabilization_s:g}",
    ]
    if limits.budget is not None:
        options.append(f"--budget={limits.budget:.12g}")
    if limits.idle_stop_s is not None:
        options.append(f"--idle-stop={limits.idle_stop_s / 60:g}")
    return options + ["--kill-cluster"] * limits.kill_cluster


def refuse_outputs(outputs: Mapping[str, Any]) -> None:
    """Raise InputError for options that write files: they would be on the master."""
    given = [name for name, value in outputs.items() if value]
    if given:
        raise InputError(
            f"--{given[0].replace('_', '-')} cannot be used with --install",
            "The decisions are in starcluster status --json.",
        )


def install(cluster: Cluster, options: Sequence[str], profile: str, *, dry_run: bool) -> None:
    """Install the balancer on the master, or print what would be installed."""
    access, name = Access(cluster, profile), cluster.name
    with contextlib.closing(cluster):
        if dry_run:
            what = f"instance profile {profile}; its role needs" if profile else access.profile
            click.echo(f"Unit of the master:\n{unit_text(name, options)}")
            click.echo(f"Role of the master, {what} this policy:\n{policy_text(access.scope())}")
            return
        install_on(cluster, options, access, progress=progress())
    click.echo(f"The master of {name} balances it from now on: {' '.join(options)}")
    click.echo(f"See its decisions and the money: starcluster status {name}")
    click.echo(f"Remove it: starcluster balance --uninstall {name}")


def uninstall(cluster: Cluster, profile: str) -> None:
    """Remove the balancer from the master."""
    with contextlib.closing(cluster):
        removed = uninstall_from(cluster, Access(cluster, profile))
    if not removed:
        click.echo(f"The master of {cluster.name} has no balancer.")
        return
    click.echo(f"Removed: {', '.join(removed)}. Nothing balances {cluster.name} now.")
