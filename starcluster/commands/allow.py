"""``starcluster allow``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.aws.caller import address_of_caller
from starcluster.cli.output import table
from starcluster.cluster.cluster import find
from starcluster.config.network import cidr
from starcluster.errors import InputError
from starcluster.launch.plan import check_name
from starcluster.launch.ssh_access import allowed, open_ssh

if TYPE_CHECKING:
    from starcluster.cli.app import App


@cloup.command()
@cloup.argument("tag")
@cloup.option(
    "--from",
    "sources",
    multiple=True,
    metavar="ADDRESS",
    help="Allow this address or CIDR block; can be repeated. Default: the address of this machine.",
)
@cloup.option("--only", is_flag=True, help="Close SSH for all other addresses.")
@cloup.option("--list", "listing", is_flag=True, help="List the addresses, and change nothing.")
@cloup.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_obj
def allow(
    app: App, /, tag: str, sources: tuple[str, ...], only: bool, listing: bool, as_json: bool
) -> None:
    """Open SSH of a cluster to this machine, e.g. after its address changed.

    This replaces the address of an earlier ``start`` or ``allow`` of the same user on the same
    machine.

    \b
    Examples:
      starcluster allow gpucluster
      starcluster allow --from 203.0.113.0/24 gpucluster
      starcluster allow --list gpucluster
    """
    check_name(tag)
    if not (listing or as_json):
        blocks = _blocks(app, tag, sources)
        closed = open_ssh(app.ec2, tag, blocks, only=only)
        click.echo(f"SSH of {tag} is open to {', '.join(blocks)}.")
        if closed:
            click.echo(f"Closed to {', '.join(closed)}.")
        return
    rules = allowed(app.ec2, tag)
    if as_json:
        rows = [{"address": rule.cidr_ip, "description": rule.name} for rule in rules]
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(table(("ADDRESS", "DESCRIPTION"), [(rule.cidr_ip, rule.name) for rule in rules]))


def _blocks(app: App, tag: str, sources: tuple[str, ...]) -> list[str]:
    try:
        if sources:
            return [cidr(source) for source in sources]
    except ValueError as error:
        raise InputError(f"--from: {error}") from None
    instances = find(app.ec2, app.config, tag).instances
    inside = "" if any(each.public_ip for each in instances) else instances[0].private_ip
    return [cidr(address_of_caller(app.ec2.address(), inside))]
