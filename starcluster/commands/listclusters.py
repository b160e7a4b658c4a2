"""``starcluster listclusters``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.aws.ec2 import Ec2
from starcluster.aws.regions import ask_regions
from starcluster.cli.options import json_option
from starcluster.cli.output import say_json, shown, table
from starcluster.cluster.cluster import Cluster, all_clusters, find
from starcluster.cluster.costs import NodeCost, costs_now, total_per_hour, total_so_far
from starcluster.errors import ClusterError, StarClusterError
from starcluster.launch.claim.claims import notes
from starcluster.launch.tags import TAG_DESCRIPTION
from starcluster.threadpool import ThreadPool

if TYPE_CHECKING:
    from starcluster.cli.app import App


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A cluster with the cost of each node by instance id, and the SSH state by alias."""

    cluster: Cluster
    costs: Mapping[str, NodeCost]
    ssh: Mapping[str, str]


@cloup.command()
@cloup.argument("tags", nargs=-1, metavar="[TAG]...")
@cloup.option("-s", "--show-ssh-status", is_flag=True, help="Check whether each node answers SSH.")
@cloup.option(
    "-A",
    "--all-regions",
    is_flag=True,
    help="List the clusters of all regions of the account. Exit with 1 if a region does not "
    "answer; the others are listed.",
)
@json_option
@click.pass_obj
def listclusters(
    app: App, tags: tuple[str, ...], show_ssh_status: bool, all_regions: bool, as_json: bool
) -> None:
    """List clusters and their nodes, with what they cost.

    Without TAG, it lists all clusters of the region. Prices are those of instances, without disks,
    addresses and data transfer. Dollars count from the last start of each node.

    \b
    Examples:
      starcluster listclusters
      starcluster listclusters --all-regions --json
      starcluster listclusters --show-ssh-status gpucluster
    """
    silent: dict[str, str] = {}
    changing: list[str] = []
    if all_regions:
        found, silent = _in_all_regions(app, tags, changing, ssh=show_ssh_status)
    else:
        found = _listed(app, app.ec2, tags, changing, ssh=show_ssh_status)
    if as_json:
        facts = [_facts(each) for each in found]
        unanswered = [{"region": name, "error": why} for name, why in silent.items()]
        say_json({"clusters": facts, "unanswered": unanswered} if all_regions else facts)
    elif not found and not changing:
        where = "any region that answered" if silent else "any region"
        where = where if all_regions else app.ec2.region
        click.echo(f"No clusters in {where}. Start one: starcluster start NAME")
    for each in found if not as_json else ():
        click.echo("\n".join(_lines(each)))
    for note in changing:
        click.echo(note, err=as_json)
    for name, why in silent.items():
        click.echo(f"{name} did not answer, clusters there may be running: {why}", err=True)
    if silent:
        sys.exit(1)


def _in_all_regions(
    app: App, tags: tuple[str, ...], changing: list[str], *, ssh: bool
) -> tuple[list[Listed], dict[str, str]]:
    settings = app.config.aws()
    names = [region.name for region in app.ec2.regions() if region.enabled]

    def ask(name: str) -> list[Listed]:
        ec2 = app.ec2 if name == app.ec2.region else Ec2(settings, name)
        return _listed(app, ec2, (), changing, ssh=ssh)

    answers, silent = ask_regions(names, ask)
    found = [each for name in sorted(answers) for each in answers[name]]
    there = {each.cluster.name for each in found}
    missing = [tag for tag in tags if tag not in there]
    if missing and not silent:
        raise ClusterError(
            f"cluster {', '.join(missing)} does not exist in any region",
            "List the clusters: starcluster listclusters --all-regions",
        )
    return [each for each in found if not tags or each.cluster.name in tags], silent


def _listed(
    app: App, ec2: Ec2, tags: Sequence[str], changing: list[str], *, ssh: bool
) -> list[Listed]:
    """Return clusters; append to ``changing`` what other commands launch or terminate now."""
    changing += notes(ec2, tags)
    named = [find(ec2, app.config, tag) for tag in tags]
    found = named or all_clusters(ec2, app.config)
    instances = [instance for cluster in found for instance in cluster.instances]
    costs = costs_now(ec2, instances, datetime.now(UTC)) if instances else {}
    return [Listed(cluster=each, costs=costs, ssh=_ssh(each) if ssh else {}) for each in found]


def _ssh(cluster: Cluster) -> dict[str, str]:
    def ask(node: object) -> str:
        try:
            return "up" if node.is_ssh_up() else "down"  # type: ignore[attr-defined]
        except StarClusterError as error:
            return error.what

    answers = ThreadPool().map(ask, cluster.nodes)
    cluster.close()
    return {node.alias: answer for node, answer in zip(cluster.nodes, answers, strict=True)}


def _facts(listed: Listed) -> dict[str, object]:
    cluster = listed.cluster
    nodes = []
    for instance in cluster.instances:
        node = {**asdict(instance), **asdict(listed.costs[instance.id]), "alias": instance.alias}
        if instance.alias in listed.ssh:
            node["ssh"] = listed.ssh[instance.alias]
        nodes.append(node)
    costs = [listed.costs[instance.id] for instance in cluster.instances]
    return {
        "name": cluster.name,
        "region": cluster.ec2.region,
        "state": cluster.state,
        "dollars_per_hour": total_per_hour(costs),
        "dollars_so_far": total_so_far(costs),
        "nodes": nodes,
    }


def _lines(listed: Listed) -> list[str]:
    cluster = listed.cluster
    first, count = cluster.instances[0], len(cluster.instances)
    costs = [listed.costs[instance.id] for instance in cluster.instances]
    nodes = "1 node" if count == 1 else f"{count} nodes"
    lines = [
        f"{cluster.name}: {cluster.state}, {nodes} in {cluster.ec2.region}, "
        f"since {shown(first.launched)} UTC, key {first.key_name}",
        f"  {_dollars(total_per_hour(costs))} per hour, {_dollars(total_so_far(costs))} so far",
    ]
    if about := first.tags.get(TAG_DESCRIPTION):
        lines.append(f"  {about}")
    rows = []
    for instance, cost in zip(cluster.instances, costs, strict=True):
        alias = instance.alias
        rows.append(
            (
                alias or "(no alias)",
                instance.state,
                instance.type + " spot" * instance.is_spot + " block" * instance.prepaid,
                instance.zone,
                instance.id,
                instance.public_ip or instance.private_ip,
                _dollars(cost.dollars_per_hour),
                "" if cost.age_s is None else _hours(cost.age_s),
                "" if cost.age_s is None else _dollars(cost.dollars_so_far),
                f"ssh {listed.ssh[alias]}" if alias in listed.ssh else instance.reason,
            )
        )
    headings = ("node", "state", "type", "zone", "instance", "address", "per hour", "age", "so far")
    text = table((*headings, ""), rows)
    return [*lines, *(f"  {line}" for line in text.splitlines())]


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:.2f}"


def _hours(seconds: float) -> str:
    minutes = int(seconds) // 60
    days, hours = divmod(minutes // 60, 24)
    return f"{days}d {hours}h" if days else f"{hours}h {minutes % 60:02d}m"
