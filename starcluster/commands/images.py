"""Commands about images."""

from __future__ import annotations

import click
import cloup

from starcluster.aws.stock import stock_images
from starcluster.cli.app import App
from starcluster.cli.options import json_option, original_options
from starcluster.cli.output import say_rows
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.image import check_image_name, make_image
from starcluster.commands._report import progress
from starcluster.errors import ClusterError, InputError


@cloup.command()
@cloup.argument("name", default="")
@cloup.option(
    "-o", "--owner", "owners", multiple=True, metavar="OWNER",
    help="List images of this owner: self, amazon or an account number. Repeatable. Default: self.",
)  # fmt: skip
@cloup.option(
    "-x",
    "--executable-by-me",
    "--executable",
    "executable",
    is_flag=True,
    help="List the images that other accounts share with this account.",
)
@cloup.option(
    "-s",
    "--stock",
    is_flag=True,
    help="List the stock images for node_image_id, and which image each means today.",
)
@json_option
@click.pass_obj
def listimages(
    app: App, name: str, owners: tuple[str, ...], executable: bool, stock: bool, as_json: bool
) -> None:
    """List images, newest first.

    NAME filters by name; * in it matches any text.

    \b
    Examples:
      starcluster listimages
      starcluster listimages --stock
      starcluster listimages --owner amazon 'Deep Learning Base*Ubuntu 24.04*'
    """
    if stock:
        if name or owners or executable:
            raise InputError("--stock lists fixed choices", "Remove NAME, -o and -x.")
        _list_stock(app, as_json=as_json)
        return
    wanted = owners or (() if executable else ("self",))
    found = app.ec2.images(name=name, owners=wanted, shared=executable)
    rows = [(e.id, e.created[:10], e.architecture, e.root_size_gib, e.state, e.name) for e in found]
    headings = ("ID", "CREATED", "ARCHITECTURE", "GIB", "STATE", "NAME")
    none = f"No such images in {app.ec2.region}. Stock images: starcluster listimages --stock"
    say_rows(found, headings, rows, as_json=as_json, none=none)


def _list_stock(app: App, *, as_json: bool) -> None:
    found = stock_images(app.ec2)
    rows = [
        (
            each.choice + " (default)" * each.default,
            each.architecture,
            each.driver,
            each.id or "not in this region",
            each.created[:10],
            each.parameter,
        )
        for each in found
    ]
    headings = ("IMAGE", "ARCHITECTURE", "NVIDIA DRIVER", "TODAY", "CREATED", "node_image_id")
    say_rows(found, headings, rows, as_json=as_json, none="")


@cloup.command()
@cloup.argument("instance")
@cloup.argument("name")
@cloup.option(
    "-d",
    "--description",
    default="",
    metavar="TEXT",
    help="Store this description with the image. Default: empty.",
)
@original_options("ebsimage")
@click.pass_obj
def ebsimage(app: App, instance: str, name: str, description: str) -> None:
    """Create an image NAME from a running INSTANCE of a cluster.

    The image has no host keys, login keys, user data, shell histories or credentials of home
    directories: during the snapshot they are in the memory of the instance only. The instance
    keeps running.

    \b
    Examples:
      starcluster start -o -s 1 workshop     # an instance to install software on
      starcluster ebsimage i-0123456789abcdef0 my-gpu-image
    """
    check_image_name(name)
    found = app.ec2.instance(instance)
    if not found.cluster or found.state != "running":
        state = f"is {found.state}" if found.cluster else "does not belong to a cluster"
        raise ClusterError(
            f"cannot create an image from {instance}: it {state}",
            "Choose a running node of a cluster: starcluster listclusters",
        )
    cluster: Cluster = find(app.ec2, app.config, found.cluster)
    node = cluster.node_of(found)
    try:
        image = make_image(app.ec2, node, name, description, progress())
    finally:
        node.close()
    click.echo(f"{image.id} is ready. To use it, set in the config: node_image_id = {image.id}")
