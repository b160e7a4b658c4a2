"""Entry point of the ``condor-jobs`` command, where errors become exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from condor_jobs.cli import dag, search
from condor_jobs.errors import CondorJobsError
from starmint.streams import allow_any_text, open_closed_streams

COMMANDS: dict[str, ModuleType] = {"dag": dag, "search": search}
_HELP = """\
Run searches as jobs of HTCondor, and publish the best models by DAGMan.

Run it on a host of the pool that submits jobs. Options after -- are those of spearmint run.

Examples:
  condor-jobs search digits -- --max-finished-jobs=40
  condor-jobs dag recommender --retrain="python retrain.py" --publish=/srv/models
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="condor-jobs", **_with_help(_HELP))
    commands = parser.add_subparsers(title="Commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        described = _with_help(module.HELP)
        command = commands.add_parser(name, help=described["description"], **described)
        group = _options(command)
        module.add_arguments(command, group)
        command.set_defaults(run=module.run)
    options = _options(parser)
    options.add_argument("--version", action=_PrintVersion, nargs=0, help="Print the version.")
    return parser


def _options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("Options")
    group.add_argument("-h", "--help", action="help", help="Show this help and exit.")
    return group


class _PrintVersion(argparse.Action):
    """Print the version and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *args: object, **kwargs: object) -> None:
        from spearmint import __version__

        sys.stdout.write(f"condor-jobs {__version__}\n")
        parser.exit()


def _with_help(text: str) -> dict[str, Any]:
    """Return the arguments of a parser whose help has ``text`` around the options."""
    summary, _, rest = text.partition("\n")
    return {
        "description": summary,
        "epilog": rest.strip("\n"),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "add_help": False,  # added with the other options
        "allow_abbrev": False,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 failed, 2 invalid input, 130 Ctrl-C."""
    open_closed_streams()
    allow_any_text(sys.stdout)
    words = list(sys.argv[1:] if argv is None else argv)
    end = words.index("--") if "--" in words else len(words)
    try:
        try:
            arguments = build_parser().parse_args(words[:end])
            sys.stdout.write(f"{arguments.run(arguments, words[end + 1 :])}\n")
        finally:
            sys.stdout.flush()  # an error at the exit of the interpreter cannot be handled
    except CondorJobsError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # as in: condor-jobs dag --dry-run ... | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
