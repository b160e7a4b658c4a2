"""``starcluster help`` and ``starcluster completion``."""

from __future__ import annotations

import click
import cloup
from click.shell_completion import get_completion_class

from starcluster.cli.app import App
from starcluster.config.config import default_path
from starcluster.config.edit import write_new
from starcluster.config.example import example
from starcluster.config.syntax import short


@cloup.command("help")
@cloup.argument("command", default="")
@click.pass_context
def help_(ctx: click.Context, command: str) -> None:
    """Show the help of COMMAND, or write a first config file.

    Without COMMAND, it lists the commands, or offers to write a config file if none exists.

    \b
    Examples:
      starcluster help
      starcluster help createkey
    """
    parent = ctx.find_root()
    group = parent.command
    assert isinstance(group, click.Group)  # noqa: S101 - the root is always a group
    if command:
        name, found, _ = group.resolve_command(parent, [command])
        assert found is not None  # noqa: S101 - resolve_command refuses unknown names
        click.echo(found.get_help(found.context_class(found, info_name=name, parent=parent)))
        return
    app: App = ctx.obj
    file = app.config_path or default_path()
    if file.is_file():
        click.echo(group.get_help(parent))
        return
    click.echo(f"Config file {short(file)} does not exist.")
    click.echo("  1  show the example\n  2  write the example to that file\n  q  quit")
    try:
        choice = click.prompt("Your choice", type=click.Choice(["1", "2", "q"]), default="q")
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):  # Ctrl-C
            raise
        click.echo(f"\n{group.get_help(parent)}")  # nobody can answer, as in a script
        return
    if choice == "1":
        click.echo(example())
    elif choice == "2":
        write_new(file, example())
        click.echo(f"Wrote {short(file)}. Next, create a key pair: starcluster createkey mykey")


@cloup.command()
@cloup.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script for tab completion in SHELL: bash, zsh or fish.

    \b
    Examples:
      starcluster completion bash >> ~/.bashrc
      starcluster completion fish > ~/.config/fish/completions/starcluster.fish
    """
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - click supports all three
    root = ctx.find_root()
    script = made(root.command, {}, "starcluster", "_STARCLUSTER_COMPLETE").source()
    click.echo(script)
