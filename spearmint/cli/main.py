"""Entry point of the ``spearmint`` command. Only this module turns errors into exit codes."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import click

from spearmint import __version__
from spearmint.errors import Interrupted, SpearmintError, did_you_mean
from starmint.streams import help_width, open_closed_streams

_OS_FIX = "Fix this and rerun the command; finished trials are safe."

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": (
        "spearmint.cli.run:run",
        "Run the search of a config.pb, or continue it (the default command).",
    ),
    "init": (
        "spearmint.cli.init:init",
        "Write config.pb and a wrapper that run at once, to begin a search with.",
    ),
    "plan": (
        "spearmint.cli.plan:plan",
        "Compare numbers and types of nodes for a search with a deadline and a budget.",
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
    "show": (
        "spearmint.cli.show:show",
        "Show trials: parameters, result, each job with host and GPUs, output, curve and notes.",
    ),
    "add": (
        "spearmint.cli.add:add",
        "Queue points that the search evaluates next, also while it runs.",
    ),
    "retry": (
        "spearmint.cli.retry:retry",
        "Evaluate the points of failed (broken) trials once more, also while the search runs.",
    ),
    "stop": (
        "spearmint.cli.stop:stop",
        "Stop running, queued or paused trials, and continue the search.",
    ),
    "note": ("spearmint.cli.note:note", "Keep a note with a trial, next to its earlier notes."),
    "tag": (
        "spearmint.cli.tag:tag",
        "Mark a trial with tags: words of letters, digits and . + @ / - _.",
    ),
    "check": (
        "spearmint.cli.check:check",
        "Compare the database of a search with its queue and folders.",
    ),
    "final": (
        "spearmint.cli.final:final",
        "Train the best trial on all data, test it once, and keep the model.",
    ),
    "promote": (
        "spearmint.cli.promote:promote",
        "Make the newest model current if it is better by more than its standard error.",
    ),
    "rollback": (
        "spearmint.cli.rollback:rollback",
        "Make the model current that was current before.",
    ),
    "import": (
        "spearmint.cli.import_:import_",
        "Add results of earlier runs to a search.",
    ),
    "convert": (
        "spearmint.cli.convert:convert",
        "Convert an experiment of the original Spearmint to Python 3 and config.pb.",
    ),
    "report": (
        "spearmint.cli.report:report",
        "Write an HTML page about a search, with plots as PNG files.",
    ),
    "cleanup": (
        "spearmint.cli.cleanup:cleanup",
        "Delete a search: its trials, its files and its running jobs.",
    ),
    "worker": (
        "spearmint.cli.worker:worker",
        "Run the trials of searches with --driver=CELERY on this host.",
    ),
    "workers": (
        "spearmint.cli.workers:workers",
        "List the workers of --driver=CELERY that answer within two seconds.",
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
        if args and args[0] == "help" and not Path("help").exists():
            args = [*args[1:], "--help"]
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
      spearmint init experiment
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --driver=local --method=TPESampler --trial-timeout=10m experiment/
      spearmint status experiment/
    """


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 invalid input, 128 + signal."""
    if sys.platform == "win32":
        _end("spearmint does not run on Windows itself\nInstall it in WSL 2 or in Docker.", 2)
    open_closed_streams()
    # At exit, Python looks for reference cycles several times: a second with Optuna and scipy.
    atexit.register(gc.freeze)
    try:
        code = cli.main(prog_name="spearmint", standalone_mode=False, **help_width())
        sys.exit(code if isinstance(code, int) else 0)
    except SpearmintError as error:
        _end(str(error), error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        is_signal = isinstance(error.__context__ or error, KeyboardInterrupt)
        if is_signal:
            _end("interrupted", Interrupted.exit_code)
        _end("not confirmed", 1)
    except BrokenPipeError:  # as in: spearmint status | head -1
        from spearmint.view.progress import discard_output

        discard_output()
        sys.exit(1)
    except OSError as error:
        _end(f"{error}\n{_OS_FIX}", 1)


def _end(text: str, code: int) -> NoReturn:
    with contextlib.suppress(OSError):  # nobody reads the errors
        click.echo(f"Error: {text}", err=True)
    sys.exit(code)
