"""``starcluster status``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.aws import prices
from starcluster.balance.journal import journal
from starcluster.balance.journal.money import Entry, spent
from starcluster.balance.on_master.service import Installed, installed
from starcluster.balance.on_master.unit import UNIT
from starcluster.cli.options import COUNT, json_option
from starcluster.cli.output import say_json, shown, table
from starcluster.cluster.cluster import Cluster, find, only_running
from starcluster.errors import SshError
from starcluster.launch import plan
from starcluster.model import is_master

if TYPE_CHECKING:
    from starcluster.cli.app import App


@cloup.command()
@cloup.argument("tag", required=False)
@cloup.option(
    "-n",
    "--last",
    type=COUNT,
    default=10,
    metavar="N",
    help="Show the last N different decisions of loadbalance. Default: 10.",
)
@json_option
@click.pass_obj
def status(app: App, tag: str | None, last: int, as_json: bool) -> None:
    """Show the cost of a cluster and the decisions of loadbalance.

    Without TAG, it takes the only running cluster. Costs are those of the instances, at on-demand
    prices and without disks.

    \b
    Examples:
      starcluster status gpucluster
      starcluster status --last 50 --json gpucluster
    """
    cluster = find(app.ec2, app.config, tag) if tag else only_running(app.ec2, app.config)
    entries, there, problem = _read(cluster)
    now = datetime.now(UTC)
    before = entries[-1] if entries else None
    known = prices.on_demand(app.ec2, {instance.type for instance in cluster.instances})
    price = plan.cost_of(cluster.instances, known)
    facts = {
        "name": cluster.name,
        "state": cluster.state,
        "nodes": len(cluster.instances),
        "dollars_per_hour": round(price.dollars, 4),
        "unknown_prices": list(price.unknown),
        "spent": None if problem else round(spent(before, cluster.instances, known, now), 4),
        "budget": before.budget if before else cluster.template.budget,
        "problem": problem,
        "balancer": _balancer(there, before),
        "decisions": [asdict(entry) for entry in decisions(entries)[-last:]],
        "checked": before.time if before else None,
    }
    if as_json:
        say_json(facts)
        return
    click.echo(f"{cluster.name}: {cluster.state}, {facts['nodes']} nodes, {price}")
    if facts["spent"] is not None:
        since = "Spent since the start" if before else "Spent by the current nodes"
        limit = f" of the budget of ${facts['budget']:.2f}" if facts["budget"] else ""
        click.echo(f"{since}: ${facts['spent']:.2f}{limit}")
    if there is not None:
        click.echo(
            f"Its balancer is on the master ({there.state}), installed by {there.by} on "
            f"{shown(there.at)} UTC: {' '.join(there.options)}"
        )
    click.echo("\n".join(_lines(cluster, entries, there, problem, last, now)))


def _read(cluster: Cluster) -> tuple[list[Entry], Installed | None, str]:
    """Return the journal, the balancer of the master, and why they could not be read."""
    masters = [instance for instance in cluster.instances if is_master(instance.alias)]
    if not masters or masters[0].state != "running":
        return [], None, "the journal of loadbalance is on the master, which does not run"
    try:
        ssh = cluster.master.ssh
        return journal.last_entries(ssh, 2000), installed(ssh), ""
    except SshError as error:
        return [], None, f"cannot read the journal of loadbalance: {error.what}"
    finally:
        cluster.close()


def _balancer(there: Installed | None, last: Entry | None) -> dict[str, object] | None:
    """Return where the balancer is; None if none has ever checked the cluster."""
    by = last.by if last else ""
    if there is not None:
        return {"where": "master", **asdict(there), "checked_by": by}
    return {"where": "elsewhere", "checked_by": by} if last else None


def decisions(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that differ from the one before in action or reason, or that acted."""
    found: list[Entry] = []
    for entry in entries:
        same = found and (entry.action, entry.why) == (found[-1].action, found[-1].why)
        if entry.action != "none" or not same:
            found.append(entry)
    return found


def _lines(
    cluster: Cluster,
    entries: Sequence[Entry],
    there: Installed | None,
    problem: str,
    last: int,
    now: datetime,
) -> Iterator[str]:
    start = f"starcluster loadbalance {cluster.name}"
    if there is not None:
        log = f"journalctl -u {UNIT}"
        start = f"starcluster sshmaster {cluster.name} '{log}'"
    if problem:
        yield problem[0].upper() + problem[1:]
        return
    if not entries:
        what = "Its log" if there is not None else "Start it"
        yield f"loadbalance has not checked this cluster. {what}: {start}"
        return
    latest = entries[-1]
    age_s = (now - latest.time).total_seconds()
    yield (
        f"loadbalance checked {age_s:.0f} s ago: {latest.running_jobs} jobs running, "
        f"{latest.waiting_jobs} waiting"
    )
    if not latest.is_recent(now):
        what = "Its log" if there is not None else "Start it"
        yield f"It does not seem to run. {what}: {start}"
    rows = [
        (shown(entry.time), entry.nodes, entry.action, entry.why)
        for entry in decisions(entries)[-last:]
    ]
    yield table(("time (UTC)", "nodes", "action", "reason"), rows)
