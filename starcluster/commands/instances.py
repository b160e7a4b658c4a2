"""Commands about instances, in or outside of clusters."""

from __future__ import annotations

import click
import cloup

from starcluster.aws.instances import LIVE
from starcluster.cli.app import App
from starcluster.cli.options import json_option
from starcluster.cli.output import say_rows
from starcluster.errors import NotFound
from starcluster.model import MASTER

_HEADINGS = ("ID", "CLUSTER", "NODE", "STATE", "TYPE", "ZONE", "ADDRESS", "SPOT", "LAUNCHED")


@cloup.command()
@cloup.option("-t", "--show-terminated", is_flag=True, help="Include terminated instances.")
@json_option
@click.pass_obj
def listinstances(app: App, show_terminated: bool, as_json: bool) -> None:
    """List all instances of the account in the region.

    \b
    Examples:
      starcluster listinstances
      starcluster -r eu-west-1 listinstances --show-terminated --json
    """
    ended = ("shutting-down", "terminated") if show_terminated else ()
    found = app.ec2.instances(states=(*LIVE, *ended))
    rows = [
        (
            instance.id,
            instance.cluster,
            instance.alias or instance.tags.get("Name", ""),
            instance.state,
            instance.type,
            instance.zone,
            instance.public_ip or instance.private_ip,
            instance.is_spot,
            instance.launched,
        )
        for instance in found
    ]
    none = f"No instances in {app.ec2.region}."
    say_rows(found, _HEADINGS, rows, as_json=as_json, none=none)


@cloup.command()
@cloup.option(
    "-c", "--show-closed", is_flag=True, help="Include closed, cancelled and failed requests."
)
@json_option
@click.pass_obj
def listspots(app: App, show_closed: bool, as_json: bool) -> None:
    """List the spot instance requests of the account.

    \b
    Examples:
      starcluster listspots
      starcluster listspots --show-closed --json
    """
    closed = ("closed", "cancelled", "failed") if show_closed else ()
    found = app.ec2.spot_requests(("open", "active", *closed))
    rows = [
        (e.id, e.state, e.status, e.type, e.zone, e.bid, e.instance_id, e.created) for e in found
    ]
    headings = ("ID", "STATE", "STATUS", "TYPE", "ZONE", "BID", "INSTANCE", "CREATED")
    none = f"No spot instance requests in {app.ec2.region}."
    say_rows(found, headings, rows, as_json=as_json, none=none)


@cloup.command()
@cloup.argument("instance")
@cloup.argument("node", default=MASTER)
@click.pass_obj
def showconsole(app: App, instance: str, node: str) -> None:
    """Show the console output of an instance.

    INSTANCE is an instance id, or the name of a cluster followed by NODE. NODE defaults to master.
    AWS has the output a few minutes after the boot.

    \b
    Examples:
      starcluster showconsole i-0123456789abcdef0
      starcluster showconsole gpucluster node001
    """
    if not instance.startswith("i-"):
        members = {node.alias: node.id for node in app.ec2.instances(cluster=instance)}
        if not members:
            fix = "List instances: starcluster listinstances. Choose another region with -r."
            raise NotFound(f"no cluster '{instance}' in {app.ec2.region}", fix)
        if node not in members:
            fix = f"Its nodes: {', '.join(sorted(members))}."
            raise NotFound(f"cluster '{instance}' has no node '{node}'", fix)
        instance = members[node]
    text = app.ec2.console(instance)
    click.echo(text or "No output yet: AWS has it a few minutes after the boot.")
