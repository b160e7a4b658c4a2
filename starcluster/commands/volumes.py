"""Commands about EBS volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import cloup

from starcluster.cli.app import App
from starcluster.cli.options import confirm_option, json_option, original_options
from starcluster.cli.output import say_rows, sure
from starcluster.errors import AlreadyThere, InputError, did_you_mean

WAIT_LIMIT_S = 120
_HEADINGS = ("ID", "NAME", "GIB", "STATE", "TYPE", "ZONE", "ENCRYPTED", "INSTANCE", "DEVICE")


@cloup.command()
@cloup.argument("size", type=click.IntRange(1, 65536))
@cloup.argument("zone")
@cloup.option(
    "-n",
    "--name",
    default="",
    metavar="NAME",
    help="Set the Name tag of the volume. Default: no tag.",
)
@cloup.option(
    "--snapshot",
    default="",
    metavar="ID",
    help="Create the volume from this snapshot. Default: an empty volume.",
)
@cloup.option(
    "--type",
    "type_",
    default="gp3",
    metavar="TYPE",
    help="Create this type of EBS volume. Default: gp3.",
)
@cloup.option(
    "-t",
    "--tag",
    "tags",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set this tag of the volume, too. Repeatable. Default: only tags of the default template.",
)
@original_options("createvolume")
@click.pass_obj
def createvolume(
    app: App, size: int, zone: str, name: str, snapshot: str, type_: str, tags: tuple[str, ...]
) -> None:
    """Create an encrypted EBS volume of SIZE GiB in ZONE.

    To mount it, name it in a [volume] section of the config; the nodes must be in the same zone.
    The first cluster that mounts an empty volume creates an ext4 file system on it. AWS bills the
    volume until you remove it.

    \b
    Examples:
      starcluster createvolume 200 us-east-1a --name data
      starcluster createvolume 200 us-east-1a --snapshot snap-0123456789abcdef0
    """
    zones = [known.name for known in app.ec2.zones()]
    if zone not in zones:
        fix = did_you_mean(zone, zones) or f"Available: {', '.join(zones)}."
        raise InputError(f"no zone '{zone}' in {app.ec2.region}", fix)
    given = app.config.default_tags()
    given |= {key: value for key, _, value in (tag.partition("=") for tag in tags)}
    if name:
        given["Name"] = name
    made = app.ec2.create_volume(size, zone, type=type_, snapshot_id=snapshot, tags=given or None)
    app.ec2.wait_volume(made.id, "available", limit_s=WAIT_LIMIT_S)
    click.echo(f"Created {made.id}: {size} GiB in {zone}, encrypted. Config to mount it:")
    title = name or "data"
    click.echo(f"[volume {title}]\nvolume_id = {made.id}\nmount_path = /{title}")


@cloup.command()
@cloup.argument("volume")
@cloup.argument("size", type=click.IntRange(1, 65536))
@original_options("resizevolume")
@click.pass_obj
def resizevolume(app: App, volume: str, size: int) -> None:
    """Enlarge VOLUME to SIZE GiB, even while it is in use.

    Afterwards, enlarge its file system on the master; the command prints how.

    \b
    Examples:
      starcluster resizevolume vol-0123456789abcdef0 400
      starcluster resizevolume vol-0123abcd 1000
    """
    now = app.ec2.volume(volume)
    if size <= now.size_gib:
        fix = "Volumes cannot shrink: create a smaller one (starcluster createvolume) and copy."
        raise InputError(f"{volume} already has {now.size_gib} GiB", fix)
    app.ec2.grow_volume(volume, size)
    click.echo(f"Enlarging {volume} from {now.size_gib} to {size} GiB takes AWS some minutes.")
    click.echo("After that, run on the master: growpart DEVICE PARTITION; resize2fs DEVICE")


@cloup.command()
@cloup.argument("volume")
@confirm_option
@click.pass_obj
def removevolume(app: App, volume: str, confirm: bool) -> None:
    """Delete VOLUME with all its data.

    \b
    Examples:
      starcluster removevolume vol-0123456789abcdef0
      starcluster removevolume vol-0123abcd --confirm
    """
    found = app.ec2.volume(volume)
    if found.instance_id:
        fix = "Stop or terminate that instance first."
        raise AlreadyThere(f"{volume} is attached to {found.instance_id}", fix)
    name = found.tags.get("Name")
    shown = f"{volume} ({name})" if name else volume
    sure(f"Delete {shown} with all its data ({found.size_gib} GiB)?", confirmed=confirm)
    app.ec2.delete_volume(volume)
    click.echo(f"Deleted {shown}")


def _filter(*names: str, metavar: str, what: str) -> Callable[..., Any]:
    return cloup.option(*names, metavar=metavar, help=f"List only volumes {what} Default: all.")


@cloup.command()
@cloup.option_group(
    "By volume",
    cloup.option(
        "-v",
        "--volume-id",
        "ids",
        multiple=True,
        metavar="ID",
        help="List only this volume. Repeatable. Default: all.",
    ),
    _filter("-n", "--name", metavar="NAME", what="with this Name tag."),
    _filter("-t", "--tag", metavar="NAME[=VALUE]", what="with this tag."),
)
@cloup.option_group(
    "By size, zone and snapshot",
    cloup.option(
        "-s",
        "--size",
        type=int,
        metavar="GIB",
        help="List only volumes of this size, in GiB. Default: all.",
    ),
    _filter("-z", "--zone", metavar="ZONE", what="in this zone."),
    _filter("-i", "--snapshot-id", metavar="ID", what="created from this snapshot."),
)
@cloup.option_group(
    "By state",
    _filter("-S", "--status", metavar="STATE", what="in this state, e.g. available or in-use."),
    _filter("--instance-id", metavar="ID", what="attached to this instance."),
    _filter(
        "-a",
        "--attach-status",
        metavar="STATE",
        what="in this state of attachment, e.g. attached.",
    ),
)
@original_options("listvolumes")
@json_option
@click.pass_obj
def listvolumes(
    app: App,
    ids: tuple[str, ...],
    status: str | None,
    size: int | None,
    zone: str | None,
    instance_id: str | None,
    snapshot_id: str | None,
    attach_status: str | None,
    name: str | None,
    tag: str | None,
    as_json: bool,
) -> None:
    """List the EBS volumes of the account in the region.

    \b
    Examples:
      starcluster listvolumes
      starcluster listvolumes --status available --zone us-east-1a --json
    """
    asked = {
        "status": status,
        "size": None if size is None else str(size),
        "availability-zone": zone,
        "attachment.instance-id": instance_id,
        "attachment.status": attach_status,
        "snapshot-id": snapshot_id,
        "tag:Name": name,
    }
    if tag:
        key, equals, value = tag.partition("=")
        asked |= {f"tag:{key}": value} if equals else {"tag-key": key}
    filters = {key: [value] for key, value in asked.items() if value}
    found = app.ec2.volumes(ids, filters=filters)
    rows = [
        (
            volume.id,
            volume.tags.get("Name", ""),
            volume.size_gib,
            volume.state,
            volume.type,
            volume.zone,
            volume.encrypted,
            volume.instance_id,
            volume.device,
        )
        for volume in found
    ]
    none = f"No such volumes in {app.ec2.region}."
    say_rows(found, _HEADINGS, rows, as_json=as_json, none=none)
