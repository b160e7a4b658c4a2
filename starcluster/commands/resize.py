"""``starcluster addnode`` and ``removenode``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.cli.options import COUNT, bad_node_option, confirm_option
from starcluster.cli.output import sure
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.commands._checks import checked
from starcluster.commands._report import finish, progress
from starcluster.config.template import Template
from starcluster.errors import InputError
from starcluster.launch import plan
from starcluster.model import MASTER, is_master

if TYPE_CHECKING:
    from starcluster.cli.app import App


@cloup.command()
@cloup.argument("tag")
@cloup.option_group(
    "Common options",
    cloup.option(
        "-n", "--num-nodes", type=COUNT, metavar="N", help="Add this many nodes. Default: 1."
    ),
    cloup.option(
        "-b",
        "--bid",
        type=float,
        metavar="DOLLARS",
        help="Use spot instances, and pay at most this price for each, in dollars per hour. "
        "Default: spot_bid of the cluster.",
    ),
    cloup.option(
        "-I",
        "--instance-type",
        metavar="TYPE",
        help="Use this instance type. Default: the last type of node_instance_type.",
    ),
    cloup.option(
        "-z",
        "--availability-zone",
        metavar="ZONE",
        help="Launch in this zone. Default: availability_zone or subnet_id of the cluster.",
    ),
)
@cloup.option_group(
    "Names, images and failures",
    cloup.option(
        "--capacity-reservation",
        metavar="ID",
        help="Launch the nodes in this capacity reservation or Capacity Block. Default: "
        "capacity_reservation of the cluster.",
    ),
    cloup.option(
        "-a",
        "--alias",
        metavar="NAMES",
        help="Give the nodes these aliases, separated by commas. Default: the next free numbers.",
    ),
    cloup.option(
        "-i",
        "--image-id",
        metavar="AMI",
        help="Boot the nodes from this image. Default: the image of the last node type.",
    ),
    cloup.option(
        "-x",
        "--no-create",
        is_flag=True,
        help="Launch nothing: set up the existing instances that -a names.",
    ),
    bad_node_option,
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
    capacity_reservation: str | None,
    no_create: bool,
    on_bad_node: str,
) -> None:
    """Add nodes to a running cluster and set them up.

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
            capacity_reservation=capacity_reservation,
        )
        inventory = checked(app, only_nodes(template, len(names)), overrides)
        nodes = plan.more_nodes(template, names)
        types = [node.instance_type for node in nodes]
        for line in (
            inventory.reserved.lines(types, datetime.now(UTC)) if inventory.reserved else ()
        ):
            click.echo(line)
        outcome = lifecycle.add(nodes, template, inventory, renumber=alias is None)
    finish(tag, lifecycle, outcome, f"New: {', '.join(outcome.ready)}")


def template_of_new(cluster: Cluster, **options: str | None) -> tuple[Template, Mapping[str, str]]:
    """Return the template of the new nodes, and the values that override the config."""
    given = {key: value for key, value in options.items() if value is not None}
    if "availability_zone" in given:
        given["subnet_id"] = ""
    overrides = {**cluster.origin.overrides, **given}
    template = cluster.config.template(cluster.origin.template, overrides)
    last = template.node_instance_type[-1]
    if "node_image_id" in given:  # overrides the image of the node type too
        last = replace(last, image_id="")
    return replace(template, node_instance_type=(last,)), overrides


def only_nodes(template: Template, count: int) -> Template:
    """Return a template with only the resources that ``count`` new nodes need."""
    # The checks must not refuse a volume because it is attached, or the image of the master.
    return replace(
        template, cluster_size=count, master_instance_type="", master_image_id="", volumes=()
    )


def names_of_new(cluster: Cluster, alias: str | None, count: int | None, *, new: bool) -> list[str]:
    """Return the aliases of the nodes to add; unless ``new``, of existing instances."""
    taken = [instance.alias for instance in cluster.instances]
    named = [name.strip() for name in (alias or "").split(",") if name.strip()]
    if named and count not in (None, len(named)):
        raise InputError(f"-a names {len(named)} nodes, but -n is {count}", "Remove one option.")
    if not new:
        if missing := [name for name in named if name not in taken]:
            raise InputError(f"no instance has the alias {', '.join(missing)}")
        if not named:
            raise InputError("-x requires -a", "Give the aliases of the instances: -x -a node003")
        return named
    if clash := [name for name in named if name in taken or name == MASTER]:
        which = ",".join(clash)
        again = f"If it is not set up: starcluster addnode -x -a {which} {cluster.name}"
        raise InputError(
            f"node {', '.join(clash)} already exists",
            "Choose other aliases." if MASTER in clash else f"Choose other aliases.\n{again}",
        )
    short = [name.removeprefix(f"{cluster.name}-") for name in taken]
    return named or plan.free_aliases(short, count or 1)


@cloup.command()
@cloup.argument("tag")
@cloup.option(
    "-n",
    "--num-nodes",
    type=COUNT,
    metavar="N",
    help="Remove this many nodes, the last first. Default: 1.",
)
@cloup.option(
    "-a",
    "--aliases",
    metavar="NAMES",
    help="Remove these nodes; separate aliases by commas. Default: the last nodes.",
)
@cloup.option(
    "-k",
    "--keep-instance",
    is_flag=True,
    help="Do not terminate the instances: they keep running, and AWS bills them.",
)
@cloup.option(
    "-f",
    "--force",
    is_flag=True,
    help="Terminate nodes even if the master does not answer.",
)
@confirm_option
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
    """Remove nodes from a cluster and terminate them.

    The queue reruns their jobs on other nodes.

    \b
    Examples:
      starcluster removenode gpucluster
      starcluster removenode --confirm -a node003,node004 gpucluster
    """
    cluster = find(app.ec2, app.config, tag)

    def choose(cluster: Cluster) -> list[str]:
        return aliases_to_remove(cluster, aliases, num_nodes)

    names = choose(cluster)
    sure(f"Remove {', '.join(names)} from {tag}?", confirmed=confirm)
    lifecycle = ClusterLifecycle(app.ec2, app.config, tag, progress=progress())
    # Without a question, the last nodes are those at the time of the change.
    chosen = choose if confirm and not aliases else names
    removed = lifecycle.remove(chosen, keep=keep_instance, force=force)
    kept = "; the instances keep running" if keep_instance else ""
    click.echo(f"Removed from {tag}: {', '.join(removed)}{kept}.")


def aliases_to_remove(cluster: Cluster, aliases: str | None, count: int | None) -> list[str]:
    """Return the aliases to remove: the named ones, or the last; never the master."""
    workers = [instance.alias for instance in cluster.instances if not is_master(instance.alias)]
    named = [name.strip() for name in (aliases or "").split(",") if name.strip()]
    if any(is_master(name) for name in named):
        raise InputError(
            "the master cannot be removed",
            f"Terminate the cluster: starcluster terminate {cluster.name}",
        )
    if missing := [name for name in named if name not in workers]:
        there = ", ".join(workers) or "only the master"
        raise InputError(f"no node {', '.join(missing)} in {cluster.name}", f"Its nodes: {there}.")
    wanted = count or 1
    if not named and wanted > len(workers):
        raise InputError(f"{cluster.name} has only {len(workers)} nodes, not counting the master")
    return named or workers[-wanted:]
