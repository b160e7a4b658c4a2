"""Entry point of the ``sge-jobs`` command, where errors become exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from sge_jobs.cli import check, gpus, run, scripts, setup, status, submit
from sge_jobs.cli.help import first_group
from sge_jobs.cli.streams import allow_any_text, open_closed_streams
from sge_jobs.errors import SgeJobsError

COMMANDS: dict[str, ModuleType] = {
    "setup": setup,
    "check": check,
    "gpus": gpus,
    "status": status,
    "submit": submit,
    "run": run,
    "scripts": scripts,
}
_HELP = """\
Give each Grid Engine job its own GPUs, submit jobs, and show who uses which GPU.

A cell is one installation of Grid Engine: a master, its queues and its hosts.

Examples:
  sge-jobs setup --dry-run
  sge-jobs run --gpus=1 -- python train.py --epochs=10
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="sge-jobs", **_with_help(_HELP))
    commands = parser.add_subparsers(title="Commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        described = _with_help(module.HELP)
        command = commands.add_parser(name, help=described["description"], **described)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = first_group(parser)
    options.add_argument("--version", action=_PrintVersion, nargs=0, help="Print the version.")
    return parser


class _PrintVersion(argparse.Action):
    """Print the version and exit; it is read only then."""

    def __call__(self, parser: argparse.ArgumentParser, *args: object, **kwargs: object) -> None:
        import importlib.metadata

        try:
            version = importlib.metadata.version("starmint")
        except importlib.metadata.PackageNotFoundError:
            version = "unknown (not installed)"
        sys.stdout.write(f"sge-jobs {version}\n")
        parser.exit()


def _with_help(text: str) -> dict[str, Any]:
    """Return the arguments of a parser whose help has ``text`` around the options."""
    summary, _, rest = text.partition("\n")
    return {
        "description": summary,
        "epilog": rest.strip("\n"),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "add_help": False,  # added by first_group
        "allow_abbrev": False,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 failed, 2 invalid input, 130 Ctrl-C, 143 SIGTERM."""
    open_closed_streams()
    allow_any_text(sys.stdout)
    try:
        try:
            arguments = build_parser().parse_args(argv)
            code = arguments.run(arguments)
        finally:
            sys.stdout.flush()  # an error at the exit of the interpreter cannot be handled
        sys.exit(code)
    except SgeJobsError as error:
        _say(f"Error: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # as in: sge-jobs gpus | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _say(f"Error: {error}")
        sys.exit(1)
    except KeyboardInterrupt as error:
        number = error.args[0] if error.args else signal.SIGINT
        sys.exit(128 + int(number))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
