"""``starcluster completion``: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


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
