"""Entry of the ``sge-jobs`` command; the one place where errors become exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from sge_jobs.cli import check, gpus, run, scripts, setup, status, submit
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
_DESCRIPTION = "Give each job of Grid Engine GPUs of its own; queue jobs and see what they do."
_EXAMPLES = """\
examples:
  sge-jobs setup --dry-run
  sge-jobs run --gpus=1 -- python train.py --epochs=10
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="sge-jobs",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        summary, _, rest = module.HELP.partition("\n")
        command = commands.add_parser(
            name,
            help=summary.rstrip("."),
            description=summary,
            epilog=rest.strip("\n"),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong input."""
    arguments = build_parser().parse_args(argv)
    try:
        sys.exit(arguments.run(arguments))
    except SgeJobsError as error:
        _say(f"Error: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # as in: sge-jobs gpus | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _say(f"Error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(1)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
