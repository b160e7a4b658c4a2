"""``starcluster stop``, ``terminate`` and ``restart``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import cloup

from starcluster.cli import login
from starcluster.cli.options import confirm_option
from starcluster.cli.output import sure
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.remains import describe_disks, describe_remains
from starcluster.commands._report import finish, progress
from starcluster.errors import ClusterError, Interrupted, StarClusterError
from starcluster.launch.plan import check_name

if TYPE_CHECKING:
    from starcluster.cli.app import App


_force = cloup.option(
    "-f",
    "--force",
    is_flag=True,
    help="Continue with the next cluster if one fails, and exit with 1 at the end.",
)


@cloup.command()
@cloup.argument("tags", nargs=-1, required=True, metavar="TAG...")
@confirm_option
@_force
@cloup.option(
    "-t",
    "--terminate-unstoppable",
    is_flag=True,
    help="Terminate the spot instances, which cannot be stopped. Without -t, a cluster with "
    "spot instances is not stopped.",
)
@click.pass_obj
def stop(
    app: App, tags: tuple[str, ...], confirm: bool, force: bool, terminate_unstoppable: bool
) -> None:
    """Stop clusters; start them later with start -x.

    AWS does not bill stopped instances, but it bills their disks. The command says what these cost
    per month.

    \b
    Examples:
      starcluster stop gpucluster
      starcluster start -x gpucluster
    """

    def stop_cluster(tag: str) -> None:
        lifecycle = ClusterLifecycle(app.ec2, app.config, tag, progress=progress())
        names = lifecycle.stop(terminate_unstoppable=terminate_unstoppable)
        click.echo(f"Stopped {tag}: {', '.join(names) or 'no instance was running'}.")
        click.echo(describe_disks(app.ec2, tag))
        click.echo(f"Start it later: starcluster start -x {tag}")

    _for_each_cluster(app, tags, "Stop", stop_cluster, confirm=confirm, force=force)


@cloup.command()
@cloup.argument("tags", nargs=-1, required=True, metavar="TAG...")
@confirm_option
@_force
@click.pass_obj
def terminate(app: App, tags: tuple[str, ...], confirm: bool, force: bool) -> None:
    """Terminate clusters: delete instances, root volumes and groups.

    Volumes of [volume] sections, images made from nodes and elastic addresses are kept. The command
    lists them with their cost: AWS bills them until you remove them.

    \b
    Examples:
      starcluster terminate gpucluster
      starcluster terminate --confirm gpucluster othercluster
    """

    def terminate_cluster(tag: str) -> None:
        lifecycle = ClusterLifecycle(app.ec2, app.config, tag, progress=progress())
        removed = lifecycle.terminate()
        login.forget(tag)
        click.echo(f"Terminated {tag}: {', '.join(removed) or 'nothing was left to remove'}.")
        for line in describe_remains(app.ec2, lifecycle.remains):
            click.echo(line)

    _for_each_cluster(app, tags, "Terminate", terminate_cluster, confirm=confirm, force=force)


@cloup.command()
@cloup.argument("tag")
@cloup.option("-o", "--reboot-only", is_flag=True, help="Reboot only; skip the setup.")
@click.pass_obj
def restart(app: App, tag: str, reboot_only: bool) -> None:
    """Reboot the running nodes of a cluster and rerun the setup.

    \b
    Examples:
      starcluster restart gpucluster
      starcluster restart --reboot-only gpucluster
    """
    lifecycle = ClusterLifecycle(app.ec2, app.config, tag, progress=progress())
    outcome = lifecycle.restart(set_up_too=not reboot_only)
    finish(tag, lifecycle, outcome, f"Log in: starcluster sshmaster {tag}")


def _for_each_cluster(  # type: ignore[no-untyped-def]
    app: App, tags: tuple[str, ...], what: str, work, *, confirm: bool, force: bool
) -> None:
    for tag in tags:
        check_name(tag)
    if not confirm:
        for tag in tags:
            found = app.ec2.instances(cluster=tag)
            sure(f"{what} {tag} ({len(found)} instances)?", confirmed=False)
    failed = []
    for tag in tags:
        try:
            work(tag)
        except StarClusterError as error:
            if len(tags) == 1 or not force or isinstance(error, Interrupted):
                raise
            failed.append(f"{tag}: {error.what}")
    if failed:
        raise ClusterError("\n".join([f"{len(failed)} of {len(tags)} clusters failed:", *failed]))
