"""``starcluster removeimage``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Image
from starcluster.cli.options import confirm_option
from starcluster.cli.output import sure
from starcluster.cluster.cluster import all_clusters
from starcluster.errors import AlreadyThere, AwsError, InputError, NotFound

if TYPE_CHECKING:
    from starcluster.cli.app import App


@cloup.command()
@cloup.argument("image")
@confirm_option
@cloup.option("-p", "--pretend", is_flag=True, help="Print what would be deleted; delete nothing.")
@cloup.option("-k", "--keep-image-data", is_flag=True, help="Do not delete the snapshots.")
@click.pass_obj
def removeimage(app: App, image: str, confirm: bool, pretend: bool, keep_image_data: bool) -> None:
    """Remove IMAGE of this account: deregister it and delete its snapshots.

    An image that a template of the config names or that nodes of a cluster use is not removed.

    \b
    Examples:
      starcluster removeimage ami-0123456789abcdef0
      starcluster removeimage --confirm ami-0123abcd
    """
    if not image.startswith("ami-"):
        raise InputError(f"invalid image id '{image}'", "List your images: starcluster listimages")
    own = app.ec2.images([image], owners=["self"])
    if not own:
        raise NotFound(
            f"{image} does not belong to this account", "List your images: starcluster listimages"
        )
    if users := [*_clusters(app, own[0]), *_templates(app, own[0])]:
        raise AlreadyThere(
            f"{image} ({own[0].name}) is in use by {', '.join(users)}",
            "Terminate these clusters, and name another image in these templates.",
        )
    snapshots = () if keep_image_data else own[0].snapshots
    stored = f" and {', '.join(snapshots)}" if snapshots else ""
    if pretend:
        click.echo(f"Would delete {image} ({own[0].name}){stored}; nothing was deleted.")
        return
    sure(f"Delete {image} ({own[0].name}){stored}?", confirmed=confirm)
    app.ec2.deregister_image(image)
    if not keep_image_data:
        _delete_snapshots(app.ec2, own[0])
    elif own[0].snapshots:
        click.echo(f"AWS still bills its snapshots: {', '.join(own[0].snapshots)}")
    click.echo(f"Deleted {image} ({own[0].name}){stored}")


def _clusters(app: App, image: Image) -> Iterator[str]:
    for cluster in all_clusters(app.ec2, app.config):
        if any(instance.image_id == image.id for instance in cluster.instances):
            yield f"cluster {cluster.name}"


def _templates(app: App, image: Image) -> Iterator[str]:
    for name, references in app.config.images_named().items():
        if any(_means(app.ec2, reference, image) for reference in references):
            yield f"template {name}"


def _means(ec2: Ec2, reference: str, image: Image) -> bool:
    """Return whether a reference of a template is ``image`` today."""
    if reference.startswith("ami-"):
        return reference == image.id
    try:
        return ec2.image(reference).id == image.id
    except NotFound:
        return False


def _delete_snapshots(ec2: Ec2, image: Image) -> None:
    """Delete all snapshots. Raises AwsError that names those that are left."""
    left, why = [], ""
    for snapshot in image.snapshots:
        try:
            ec2.delete_snapshot(snapshot)
        except NotFound:
            continue
        except AwsError as error:
            left.append(snapshot)
            why = error.what
    if left:
        command = "\n".join(f"aws ec2 delete-snapshot --snapshot-id {id}" for id in left)
        raise AwsError(
            f"{image.id} is deregistered, but {', '.join(left)} exist and cost: {why}",
            f"Delete them:\n{command}",
        )
