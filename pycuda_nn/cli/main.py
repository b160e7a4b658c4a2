"""The command ``pycuda-nn``: its subcommands, and the exit codes of their errors."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import cloup

from pycuda_nn.cli.bench import bench
from pycuda_nn.cli.describe import describe
from pycuda_nn.cli.evaluate import evaluate
from pycuda_nn.cli.predict import predict
from pycuda_nn.cli.train import train
from pycuda_nn.errors import PycudaNNError
from starmint.streams import help_width, open_closed_streams

COMMANDS: tuple[click.Command, ...] = (describe, train, evaluate, predict, bench)


def _version() -> str:
    try:
        return importlib.metadata.version("starmint")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (not installed)"


def _print_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"pycuda-nn {_version()}")
        context.exit()


@cloup.group(context_settings={"help_option_names": ["-h", "--help"]})
@cloup.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def cli() -> None:
    """Train fully connected neural networks on a GPU or the CPU.

    \b
    Examples:
      pycuda-nn train --data digits --set epochs=30 --checkpoint digits.npz
      pycuda-nn evaluate --checkpoint digits.npz
    """


for _command in COMMANDS:
    cli.add_command(_command)


def _discard_output() -> None:
    """Discard unwritten standard output: its flush at exit would fail and exit with 120."""
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 1 failed, 2 invalid input, 130 Ctrl-C."""
    open_closed_streams()
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        code = cli.main(args=argv, prog_name="pycuda-nn", standalone_mode=False, **help_width())
    except PycudaNNError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. To continue from a --checkpoint, add --resume.", err=True)
        return 130
    except OSError as error:  # not of a closed pipe: click handles that
        click.echo(f"Error: {error.filename or 'standard output'}: {error.strerror}", err=True)
        if error.filename is None:
            _discard_output()
        return 1
    except MemoryError as error:
        click.echo(f"Error: not enough memory: {error}\nUse fewer rows at a time.", err=True)
        return 1
    return code if isinstance(code, int) else 0
