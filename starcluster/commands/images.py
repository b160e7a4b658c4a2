"""Commands about images."""

from __future__ import annotations

import click

from starcluster.cli.app import App
from starcluster.cli.output import json_option, say_rows
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.image import check_image_name, make_image
from starcluster.commands._report import progress
from starcluster.errors import ClusterError


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
    """List images that NAME fits, the newest first; * matches any text.

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


@click.command()
@click.argument("instance")
@click.argument("name")
@click.option("-d", "--description", default="", metavar="TEXT", help="Kept with the image.")
@click.pass_obj
def ebsimage(app: App, instance: str, name: str, description: str) -> None:
    """Make an image NAME of a running INSTANCE of a cluster, to start others from.

    \b
    Without its host keys, what lets people log in, user data, histories and credentials in home
    directories: for the moment of the snapshot they are in its memory only. It runs on.

    \b
    Examples:
      starcluster start -o -s 1 workshop     # an instance to install things on
      starcluster ebsimage i-0123456789abcdef0 my-gpu-image
    """
    check_image_name(name)
    found = app.ec2.instance(instance)
    if not found.cluster or found.state != "running":
        state = f"is {found.state}" if found.cluster else "is of no cluster"
        raise ClusterError(
            f"{instance} {state}: nobody can clean it",
            "Take a running node of a cluster: starcluster listclusters",
        )
    cluster: Cluster = find(app.ec2, app.config, found.cluster)
    node = cluster.node_of(found)
    try:
        image = make_image(app.ec2, node, name, description, progress())
    finally:
        node.close()
    click.echo(f"{image.id} is ready. In the config: node_image_id = {image.id}")
