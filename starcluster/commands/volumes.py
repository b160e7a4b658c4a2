"""Commands about EBS volumes."""

from __future__ import annotations

import click

from starcluster.cli.app import App
from starcluster.cli.output import confirm_option, json_option, say_rows, sure
from starcluster.errors import AlreadyThere, InputError, did_you_mean

WAIT_LIMIT_S = 120
_HEADINGS = ("ID", "NAME", "GIB", "STATE", "TYPE", "ZONE", "ENCRYPTED", "INSTANCE", "DEVICE")


@click.command()
@click.argument("size", type=click.IntRange(1, 65536))
@click.argument("zone")
@click.option("-n", "--name", default="", help="Its tag Name.")
@click.option(
    "-s", "--snapshot", default="", metavar="ID", help="Begin with what is in a snapshot."
)
@click.option("-t", "--type", "type_", default="gp3", show_default=True, help="Kind of volume.")
@click.pass_obj
def createvolume(app: App, size: int, zone: str, name: str, snapshot: str, type_: str) -> None:
    """Make an encrypted volume of SIZE GiB in ZONE.

    A cluster whose nodes are in its zone mounts it when a [volume] section of the config names
    it; the first one makes an ext4 file system.

    \b
    Examples:
      starcluster createvolume 200 us-east-1a --name data
      starcluster createvolume 200 us-east-1a --snapshot snap-0123456789abcdef0
    """
    zones = [known.name for known in app.ec2.zones()]
    if zone not in zones:
        fix = did_you_mean(zone, zones) or f"There is: {', '.join(zones)}."
        raise InputError(f"no zone '{zone}' in {app.ec2.region}", fix)
    made = app.ec2.create_volume(
        size, zone, type=type_, snapshot_id=snapshot, tags={"Name": name} if name else None
    )
    app.ec2.wait_volume(made.id, "available", limit_s=WAIT_LIMIT_S)
    click.echo(f"Made {made.id}: {size} GiB in {zone}, encrypted. For clusters, in the config:")
    title = name or "data"
    click.echo(f"[volume {title}]\nvolume_id = {made.id}\nmount_path = /{title}")


@click.command()
@click.argument("volume")
@click.argument("size", type=click.IntRange(1, 65536))
@click.pass_obj
def resizevolume(app: App, volume: str, size: int) -> None:
    """Make VOLUME larger, to SIZE GiB, in place; it may be in use.

    \b
    Examples:
      starcluster resizevolume vol-0123456789abcdef0 400
      starcluster resizevolume vol-0123abcd 1000
    """
    now = app.ec2.volume(volume)
    if size <= now.size_gib:
        fix = "Volumes can only grow. For a smaller one: starcluster createvolume, and copy."
        raise InputError(f"{volume} has {now.size_gib} GiB already", fix)
    app.ec2.grow_volume(volume, size)
    click.echo(f"{volume} grows from {now.size_gib} to {size} GiB; this can take AWS a while.")
    click.echo("Then its file system, on the master: growpart DEVICE PARTITION; resize2fs DEVICE")


@click.command()
@click.argument("volume")
@confirm_option
@click.pass_obj
def removevolume(app: App, volume: str, confirm: bool) -> None:
    """Delete VOLUME and what is on it.

    \b
    Examples:
      starcluster removevolume vol-0123456789abcdef0
      starcluster removevolume vol-0123abcd --confirm
    """
    found = app.ec2.volume(volume)
    if found.instance_id:
        fix = "Terminate or stop what uses it first."
        raise AlreadyThere(f"{volume} is attached to {found.instance_id}", fix)
    name = found.tags.get("Name")
    shown = f"{volume} ({name})" if name else volume
    sure(f"Delete {shown}, {found.size_gib} GiB, for good?", confirmed=confirm)
    app.ec2.delete_volume(volume)
    click.echo(f"Deleted {shown}")


@click.command()
@click.option("-v", "--volume-id", "ids", multiple=True, metavar="ID", help="Only this one.")
@click.option("-S", "--status", metavar="STATE", help="available, in-use, ...")
@click.option("-s", "--size", type=int, metavar="GIB", help="Of this size.")
@click.option("-z", "--zone", metavar="ZONE", help="In this zone.")
@click.option("-i", "--instance-id", metavar="ID", help="Attached to this instance.")
@click.option("-t", "--tag", metavar="NAME[=VALUE]", help="With this tag.")
@json_option
@click.pass_obj
def listvolumes(
    app: App,
    ids: tuple[str, ...],
    status: str | None,
    size: int | None,
    zone: str | None,
    instance_id: str | None,
    tag: str | None,
    as_json: bool,
) -> None:
    """List the account's volumes in the region.

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
    }
    if tag:
        name, equals, value = tag.partition("=")
        asked |= {f"tag:{name}": value} if equals else {"tag-key": name}
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
