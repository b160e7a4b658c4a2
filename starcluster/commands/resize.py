"""``starcluster addnode`` and ``removenode``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from starcluster.cli.output import sure
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.operation import BAD_NODE
from starcluster.commands._checks import checked
from starcluster.commands._report import finish, progress
from starcluster.config.template import Template
from starcluster.errors import InputError
from starcluster.launch import plan
from starcluster.model import MASTER, is_master

if TYPE_CHECKING:
    from starcluster.cli.app import App


@click.command()
@click.argument("tag")
@click.option("-n", "--num-nodes", type=click.IntRange(1), help="How many. Default: 1.")
@click.option("-a", "--alias", metavar="NAMES", help="Their aliases, with commas between.")
@click.option("-I", "--instance-type", metavar="TYPE", help="Default: as the last nodes.")
@click.option("-i", "--image-id", metavar="AMI")
@click.option("-z", "--availability-zone", metavar="ZONE")
@click.option("-b", "--bid", type=float, metavar="DOLLARS", help="Spot, at most at this price.")
@click.option("-x", "--no-create", is_flag=True, help="Take in instances that are there.")
@click.option(
    "--on-bad-node",
    type=click.Choice(BAD_NODE),
    default=BAD_NODE[0],
    help="A node that fails is left as it is, removed, or replaced once. Default: leave.",
)
@click.pass_obj
def addnode(
    app: App,
    tag: str,
    num_nodes: int | None,
    alias: str | None,
    instance_type: str | None,
    image_id: str | None,
    availability_zone: str | None,
    bid: float | None,
    no_create: bool,
    on_bad_node: str,
) -> None:
    """Add nodes to a running cluster, all at once.

    \b
    Examples:
      starcluster addnode gpucluster
      starcluster addnode -n 4 -b 0.40 gpucluster
    """
    cluster = find(app.ec2, app.config, tag)
    names = names_of_new(cluster, alias, num_nodes, new=not no_create)
    lifecycle = ClusterLifecycle(
        app.ec2, app.config, tag, progress=progress(), on_bad_node=on_bad_node
    )
    if no_create:
        outcome = lifecycle.adopt(names)
    else:
        template, overrides = template_of_new(
            cluster,
            node_instance_type=instance_type,
            node_image_id=image_id,
            availability_zone=availability_zone,
            spot_bid=None if bid is None else str(bid),
        )
        inventory = checked(app, only_nodes(template, len(names)), overrides)
        outcome = lifecycle.add(plan.more_nodes(template, names), template, inventory)
    finish(tag, lifecycle, outcome, f"New: {', '.join(outcome.ready)}")


def template_of_new(cluster: Cluster, **options: str | None) -> tuple[Template, Mapping[str, str]]:
    """Return the template of the new nodes, and what overrides the config for it."""
    given = {key: value for key, value in options.items() if value is not None}
    if "availability_zone" in given:
        given["subnet_id"] = ""
    overrides = {**cluster.origin.overrides, **given}
    template = cluster.config.template(cluster.origin.template, overrides)
    last = template.node_instance_type[-1]
    if "node_image_id" in given:  # also where the type has an image of its own
        last = replace(last, image_id="")
    return replace(template, node_instance_type=(last,)), overrides


def only_nodes(template: Template, count: int) -> Template:
    """Return a template that names what ``count`` new nodes need, and nothing of the master's."""
    # An attached volume is no obstacle, nor an image that only the master was made of.
    return replace(
        template, cluster_size=count, master_instance_type="", master_image_id="", volumes=()
    )


def names_of_new(cluster: Cluster, alias: str | None, count: int | None, *, new: bool) -> list[str]:
    """Return the aliases of nodes to be added, or of those to be taken in."""
    taken = [instance.alias for instance in cluster.instances]
    named = [name.strip() for name in (alias or "").split(",") if name.strip()]
    if named and count not in (None, len(named)):
        raise InputError(f"-a names {len(named)} nodes, but -n {count}", "Leave out one of them.")
    if not new:
        if missing := [name for name in named if name not in taken]:
            raise InputError(f"no instance has the alias {', '.join(missing)}")
        if not named:
            raise InputError("-x needs -a", "Name the aliases of the instances.")
        return named
    if clash := [name for name in named if name in taken or name == MASTER]:
        raise InputError(f"there is a node {', '.join(clash)} already", "Choose other aliases.")
    short = [name.removeprefix(f"{cluster.name}-") for name in taken]
    return named or plan.free_aliases(short, count or 1)


@click.command()
@click.argument("tag")
@click.option("-n", "--num-nodes", type=click.IntRange(1), help="How many; the last. Default: 1.")
@click.option("-a", "--aliases", metavar="NAMES", help="Their aliases, with commas between.")
@click.option("-k", "--keep-instance", is_flag=True, help="Let the instances run on.")
@click.option("-f", "--force", is_flag=True, help="Also where the master cannot be reached.")
@click.option("-c", "--confirm", is_flag=True, help="Do not ask.")
@click.pass_obj
def removenode(
    app: App,
    tag: str,
    num_nodes: int | None,
    aliases: str | None,
    keep_instance: bool,
    force: bool,
    confirm: bool,
) -> None:
    """Remove nodes from a cluster; their jobs run again elsewhere.

    \b
    Examples:
      starcluster removenode gpucluster
      starcluster removenode --confirm -a node003,node004 gpucluster
    """
    cluster = find(app.ec2, app.config, tag)
    names = aliases_to_remove(cluster, aliases, num_nodes)
    sure(f"Remove {', '.join(names)} of {tag}?", confirmed=confirm)
    lifecycle = ClusterLifecycle(app.ec2, app.config, tag, progress=progress())
    removed = lifecycle.remove(names, keep=keep_instance, force=force)
    kept = "; the instances run on" if keep_instance else ""
    click.echo(f"Removed of {tag}: {', '.join(removed)}{kept}.")


def aliases_to_remove(cluster: Cluster, aliases: str | None, count: int | None) -> list[str]:
    """Return the aliases to be removed: those named, or the last ones; never the master."""
    workers = [instance.alias for instance in cluster.instances if not is_master(instance.alias)]
    named = [name.strip() for name in (aliases or "").split(",") if name.strip()]
    if any(is_master(name) for name in named):
        raise InputError(
            "the master cannot be removed", f"End the cluster: starcluster terminate {cluster.name}"
        )
    if missing := [name for name in named if name not in workers]:
        there = ", ".join(workers) or "none but the master"
        raise InputError(f"no node {', '.join(missing)} in {cluster.name}", f"There are: {there}.")
    wanted = count or 1
    if not named and wanted > len(workers):
        raise InputError(f"{cluster.name} has only {len(workers)} nodes besides the master")
    return named or workers[-wanted:]
