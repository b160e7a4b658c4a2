"""Entry of the ``spearmint`` command; the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from spearmint import __version__
from spearmint.errors import SpearmintError, did_you_mean

_OS_FIX = "Fix this and rerun the command; finished trials are safe."

COMMANDS: Mapping[str, str] = {
    "run": "spearmint.cli.run:run",
    "status": "spearmint.cli.status:status",
    "best": "spearmint.cli.best:best",
    "export": "spearmint.cli.export:export",
    "import": "spearmint.cli.import_:import_",
    "report": "spearmint.cli.report:report",
    "cleanup": "spearmint.cli.cleanup:cleanup",
}
"""Where each command is declared; these modules load Optuna and the like only when they run."""


class DefaultGroup(click.Group):
    """Commands imported when used; ``run`` needs no name: ``spearmint config.pb``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command ``cmd_name``, or None."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` in front unless a command or a question about them comes first."""
        if args and args[0] not in (*COMMANDS, "--help", "-h", "--version"):
            if not args[0].startswith("-") and not Path(args[0]).exists() and len(args[0]) > 1:
                self._refuse_typo(ctx, args[0])
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def _refuse_typo(self, ctx: click.Context, word: str) -> None:
        hint = did_you_mean(word, COMMANDS)
        if hint and "/" not in word and "." not in word:
            raise click.UsageError(f"no command or file {word!r}. {hint}", ctx)


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="spearmint")
def cli() -> None:
    """Search hyperparameters by Bayesian optimisation.

    \b
    spearmint [OPTIONS] CONFIG   runs the search of a config.pb; CONFIG may be its directory.
                                 All its options: spearmint run --help

    \b
    Examples:
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --driver=local --method=TPESampler --trial-timeout=10m experiment/
      spearmint status experiment/
    """


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed or stopped, 2 wrong input."""
    try:
        cli(prog_name="spearmint")
    except SpearmintError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(f"Error: {error}\n{_OS_FIX}", err=True)
        sys.exit(1)
