"""Entry point of the ``spearmint`` command. Only this module turns errors into exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from spearmint import __version__
from spearmint.errors import SpearmintError, did_you_mean

_OS_FIX = "Fix this and rerun the command; finished trials are safe."

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": (
        "spearmint.cli.run:run",
        "Run the search of a config.pb, or continue it (the default command).",
    ),
    "status": (
        "spearmint.cli.status:status",
        "Show the state of a search: trials by state, the best, and why others failed.",
    ),
    "best": (
        "spearmint.cli.best:best",
        "Print the best trial, or the best trial of each region.",
    ),
    "export": ("spearmint.cli.export:export", "Write all trials as CSV or JSON."),
    "import": (
        "spearmint.cli.import_:import_",
        "Add results of earlier runs to a search, as complete trials.",
    ),
    "report": (
        "spearmint.cli.report:report",
        "Write an HTML page about a search, with plots as PNG files.",
    ),
    "cleanup": (
        "spearmint.cli.cleanup:cleanup",
        "Delete a search: its trials, its files and its running jobs.",
    ),
}
"""``module:name`` of each command, and the first sentence of its help.

``spearmint --help`` imports none of these modules; with them, it would take twice as long.
"""


class DefaultGroup(click.Group):
    """Commands that are imported when used. ``spearmint config.pb`` is ``run``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command ``cmd_name``, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command's help, uncut."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``run`` unless the first argument is a command, --help or --version."""
        if args and args[0] not in (*COMMANDS, "--help", "-h", "--version"):
            if not args[0].startswith("-") and not Path(args[0]).exists() and len(args[0]) > 1:
                self._reject_typo(ctx, args[0])
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def _reject_typo(self, ctx: click.Context, word: str) -> None:
        hint = did_you_mean(word, COMMANDS)
        if hint and "/" not in word and "." not in word:
            raise click.UsageError(f"no such command or file: {word!r}. {hint}", ctx)


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="spearmint")
def cli() -> None:
    """Search hyperparameters by Bayesian optimisation.

    \b
    spearmint [OPTIONS] CONFIG   is short for spearmint run [OPTIONS] CONFIG.
                                 Its options: spearmint run --help

    \b
    Examples:
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --driver=local --method=TPESampler --trial-timeout=10m experiment/
      spearmint status experiment/
    """


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed or stopped, 2 invalid input."""
    try:
        cli(prog_name="spearmint")
    except SpearmintError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(f"Error: {error}\n{_OS_FIX}", err=True)
        sys.exit(1)
