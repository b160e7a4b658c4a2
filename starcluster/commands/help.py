"""``starcluster help``: help of a command, or a first config file."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from starcluster.cli.app import App
from starcluster.config.config import default_path
from starcluster.config.edit import write_new
from starcluster.config.example import example
from starcluster.config.syntax import short


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


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    \b
    Examples:
      eval "$(starcluster completion bash)"
      starcluster completion fish > ~/.config/fish/completions/starcluster.fish
    """
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - click has all three
    root = ctx.find_root()
    script = made(root.command, {}, "starcluster", "_STARCLUSTER_COMPLETE").source()
    click.echo(script)
