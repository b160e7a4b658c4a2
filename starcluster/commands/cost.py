"""``starcluster cost``: the bill of a cluster so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.cli.options import json_option
from starcluster.cli.output import say_json, shown, table
from starcluster.cluster.cluster import Cluster
from starcluster.errors import ClusterError, StarClusterError
from starcluster.launch import plan
from starcluster.model import is_master
from starcluster.money import record
from starcluster.money.statement import NodeBill, Statement, doubts, statement

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.money.record import Recorded

LEFT_OUT = (
    "disks", "snapshots", "addresses", "traffic", "tax", "reserved capacity and Capacity Blocks",
)  # fmt: skip
_COLUMNS = 7  # days in the table


@cloup.command()
@cloup.argument("tag")
@json_option
@click.pass_obj
def cost(app: App, tag: str, as_json: bool) -> None:
    """Show what the nodes of a cluster have cost so far, by node and day.

    Spot nodes cost the price of their zone at each time, on-demand nodes the list price; stopped
    and lost nodes count until their end. It also works after the cluster is terminated, from the
    records of commands on this machine. Days are in UTC.

    \b
    Examples:
      starcluster cost gpucluster
      starcluster cost --json gpucluster
    """
    plan.check_name(tag)
    found, problems = _recorded(app, tag)
    now = datetime.now(UTC)
    bill = statement(found.bill, now)
    notes = [*doubts(bill, found.bill, found.instances), *problems]
    if as_json:
        say_json({**asdict(bill), "left_out": LEFT_OUT, "notes": notes})
        return
    click.echo("\n".join(_lines(bill)))
    click.echo(f"Not included: {', '.join(LEFT_OUT)}.")
    for note in notes:
        click.echo(note)


def _recorded(app: App, tag: str) -> tuple[Recorded, list[str]]:
    """Return the record of a cluster, and the problems. Raises ClusterError if there is none."""
    problems = []
    found = record(app.ec2, tag, thorough=True)
    if found is not None and (through := _running(app, tag, found)) is not None:
        try:
            found = record(app.ec2, tag, ssh=through.master.ssh, thorough=True) or found
        except StarClusterError as error:
            problems.append(f"The record on the master was not read: {error.what}")
        finally:
            through.close()
    if found is None or not found.bill.runs:
        raise ClusterError(
            f"nothing is known of cluster '{tag}' in {app.ec2.region}",
            "AWS lists a terminated cluster for an hour. Later its bill is on the machines that "
            "used it, in ~/.starcluster/bill.",
        )
    return found, problems + list(dict.fromkeys(error.what for error in found.errors))


def _running(app: App, tag: str, found: Recorded) -> Cluster | None:
    """Return the cluster if its master runs."""
    live = [each for each in found.instances if each.state in ("running", "stopped")]
    running = any(is_master(each.alias) and each.state == "running" for each in live)
    return Cluster(tag, live, app.ec2, app.config) if running else None


def _lines(bill: Statement) -> list[str]:
    running = sum(node.state == "runs" for node in bill.nodes)
    nodes = "1 node runs" if running == 1 else f"{running} nodes run"
    now = f"{nodes}, ${bill.per_hour:.2f} per hour" if running else "no node runs"
    period = f"from {shown(bill.since)} to {shown(bill.until)} UTC"
    names = list(bill.days)
    early, late = names[:-_COLUMNS], names[-_COLUMNS:]
    headings = ["node", "type", "state", *(["before"] if early else []), *late, "hours", "dollars"]
    rows = [_row(node, early, late) for node in bill.nodes]
    sums = [f"{sum(bill.days[day] for day in early):.2f}"] * bool(early)
    sums += [f"{bill.days[day]:.2f}" for day in late]
    hours = sum(node.hours for node in bill.nodes)
    rows.append(["total", "", "", *sums, f"{hours:.2f}", f"{bill.dollars:.2f}"])
    return [f"{bill.cluster}: ${bill.dollars:.2f} {period}; {now}", table(headings, rows)]


def _row(node: NodeBill, early: Sequence[str], late: Sequence[str]) -> list[str]:
    days = [f"{sum(node.days.get(day, 0.0) for day in early):.2f}"] * bool(early)
    days += [f"{node.days[day]:.2f}" if day in node.days else "" for day in late]
    kind = node.type + " spot" * node.spot
    return [node.node, kind, node.state, *days, f"{node.hours:.2f}", f"{node.dollars:.2f}"]
