"""Commands about regions and zones."""

from __future__ import annotations

import click
import cloup

from starcluster.cli.app import App
from starcluster.cli.options import json_option
from starcluster.cli.output import say_rows


@cloup.command()
@json_option
@click.pass_obj
def listregions(app: App, as_json: bool) -> None:
    """List the regions of EC2.

    \b
    Examples:
      starcluster listregions
      starcluster listregions --json
    """
    found = app.ec2.regions()
    rows = [(region.name, region.endpoint, region.enabled) for region in found]
    headings = ("REGION", "ENDPOINT", "ENABLED")
    say_rows(found, headings, rows, as_json=as_json, none="No regions.")


@cloup.command()
@json_option
@click.pass_obj
def listzones(app: App, as_json: bool) -> None:
    """List the availability zones of the region.

    \b
    Examples:
      starcluster listzones
      starcluster -r eu-west-1 listzones --json
    """
    found = app.ec2.zones()
    rows = [(zone.name, zone.id, zone.state) for zone in found]
    headings = ("ZONE", "ID", "STATE")
    say_rows(found, headings, rows, as_json=as_json, none=f"No zones in {app.ec2.region}.")
