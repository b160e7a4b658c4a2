"""Commands about images."""

from __future__ import annotations

import click

from starcluster.cli.app import App
from starcluster.cli.output import json_option, say_rows


@click.command()
@click.argument("name", default="")
@click.option(
    "-o", "--owner", "owners", multiple=True, metavar="OWNER",
    help="self, amazon or an account's number; default: self. Can be repeated.",
)  # fmt: skip
@click.option("-x", "--executable", is_flag=True, help="Those that others shared with the account.")
@json_option
@click.pass_obj
def listimages(
    app: App, name: str, owners: tuple[str, ...], executable: bool, as_json: bool
) -> None:
    """List images that NAME fits, the newest first; * stands for any text.

    \b
    Examples:
      starcluster listimages
      starcluster listimages --owner amazon 'Deep Learning Base*Ubuntu 24.04*'
    """
    wanted = owners or (() if executable else ("self",))
    found = app.ec2.images(name=name, owners=wanted, shared=executable)
    rows = [(e.id, e.created[:10], e.architecture, e.root_size_gib, e.state, e.name) for e in found]
    headings = ("ID", "CREATED", "ARCHITECTURE", "GIB", "STATE", "NAME")
    none = f"No such images in {app.ec2.region}."
    say_rows(found, headings, rows, as_json=as_json, none=none)
