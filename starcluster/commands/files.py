"""``starcluster put`` and ``get``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.cluster.cluster import find
from starcluster.errors import InputError
from starcluster.model import MASTER

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.node.shell import Shell

_user = cloup.option(
    "-u", "--user", default="root", metavar="NAME", help="Copy as this user. Default: root."
)
_node = cloup.option(
    "-n",
    "--node",
    default=MASTER,
    metavar="NODE",
    help="Copy to or from this node. Default: master.",
)


@cloup.command()
@cloup.argument("tag")
@cloup.argument("paths", nargs=-1, required=True, metavar="SRC... DST")
@_user
@_node
@click.pass_obj
def put(app: App, tag: str, paths: tuple[str, ...], user: str, node: str) -> None:
    """Copy files and directories from this machine to a node.

    \b
    Examples:
      starcluster put gpucluster examples/digits /home/sgeadmin
      starcluster put -u sgeadmin gpucluster config.pb data.npz search/
    """
    sources, target = _split(paths)
    missing = [source for source in sources if not Path(source).exists()]
    if missing:
        raise InputError(f"no such file: {', '.join(missing)}", "Nothing was copied.")
    with _shell(app, tag, node, user) as shell:
        shell.put([str(Path(source)) for source in sources], target)
    click.echo(f"Copied to {node} of {tag}: {', '.join(sources)} -> {target}")


@cloup.command()
@cloup.argument("tag")
@cloup.argument("paths", nargs=-1, required=True, metavar="SRC... DST")
@_user
@_node
@click.pass_obj
def get(app: App, tag: str, paths: tuple[str, ...], user: str, node: str) -> None:
    """Copy files and directories from a node to this machine.

    \b
    Examples:
      starcluster get gpucluster /home/sgeadmin/digits/output .
      starcluster get -n node001 gpucluster /var/log/syslog logs/
    """
    sources, target = _split(paths)
    with _shell(app, tag, node, user) as shell:
        shell.get(list(sources), target)
    click.echo(f"Copied from {node} of {tag}: {', '.join(sources)} -> {target}")


def _split(paths: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    if len(paths) < 2:
        raise click.UsageError("Give at least one source and the destination.")
    return paths[:-1], paths[-1]


@contextlib.contextmanager
def _shell(app: App, tag: str, node: str, user: str) -> Iterator[Shell]:
    cluster = find(app.ec2, app.config, tag)
    shell = cluster.shell(cluster.node(node).instance, user)
    try:
        yield shell
    finally:
        shell.close()
