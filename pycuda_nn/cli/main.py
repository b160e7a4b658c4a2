"""The command ``pycuda-nn``: its commands, and the exit codes of their errors."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from pycuda_nn.cli.bench import bench
from pycuda_nn.cli.evaluate import evaluate
from pycuda_nn.cli.predict import predict
from pycuda_nn.cli.train import train
from pycuda_nn.errors import PycudaNNError

COMMANDS: tuple[click.Command, ...] = (train, evaluate, predict, bench)


def _version() -> str:
    try:
        return importlib.metadata.version("starmint")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (not installed)"


def _print_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"pycuda-nn {_version()}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def cli() -> None:
    """Train fully connected networks.

    \b
    Examples:
      pycuda-nn train --data digits --set epochs=30 --checkpoint digits.npz
      pycuda-nn evaluate --checkpoint digits.npz
    """


for _command in COMMANDS:
    cli.add_command(_command)


def _discard_output() -> None:
    """Drop what standard output could not write: the flush at exit would fail and exit with 120."""
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 1 failed, 2 wrong input, 130 Ctrl-C."""
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        code = cli.main(args=argv, prog_name="pycuda-nn", standalone_mode=False)
    except PycudaNNError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; with --checkpoint, go on with --resume.", err=True)
        return 130
    except OSError as error:  # of files: the others; a closed pipe ends the command in click
        click.echo(f"Error: {error.filename or 'standard output'}: {error.strerror}", err=True)
        if error.filename is None:
            _discard_output()
        return 1
    except MemoryError as error:
        click.echo(f"Error: not enough memory: {error}\nUse fewer rows at a time.", err=True)
        return 1
    return code if isinstance(code, int) else 0
