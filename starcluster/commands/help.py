"""``starcluster help``: help of a command, or a first config file."""

from __future__ import annotations

import click

from starcluster.cli.app import App
from starcluster.config import default_path
from starcluster.config_edit import example, write_new
from starcluster.config_file import short


@click.command("help")
@click.argument("command", default="")
@click.pass_context
def help_(ctx: click.Context, command: str) -> None:
    """Show the help of COMMAND; without a config file yet, offer to write one.

    \b
    Examples:
      starcluster help
      starcluster help createkey
    """
    parent = ctx.find_root()
    group = parent.command
    assert isinstance(group, click.Group)  # noqa: S101 - it is the group we are called from
    if command:
        name, found, _ = group.resolve_command(parent, [command])
        assert found is not None  # noqa: S101 - a name there is not has been refused
        click.echo(found.get_help(click.Context(found, info_name=name, parent=parent)))
        return
    app: App = ctx.obj
    file = app.config_path or default_path()
    if file.is_file():
        click.echo(group.get_help(parent))
        return
    click.echo(f"There is no config file {short(file)}.")
    click.echo("  1  show the example\n  2  write it there\n  q  do nothing")
    choice = click.prompt("Your choice", type=click.Choice(["1", "2", "q"]), default="q")
    if choice == "1":
        click.echo(example())
    elif choice == "2":
        write_new(file, example())
        click.echo(f"Wrote {short(file)}. Next, a key: starcluster createkey mykey")
