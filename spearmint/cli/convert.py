"""``spearmint convert``: make an old experiment run."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import cloup

from spearmint.errors import InputError, SpearmintError


@cloup.command()
@cloup.argument(
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The directory of the experiment.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@click.option(
    "-y", "--yes", is_flag=True, help="Do not ask for confirmation. Scripts are never asked."
)
def convert(directory: Path, dry_run: bool, yes: bool) -> None:
    """Convert an experiment of the original Spearmint to Python 3 and config.pb.

    It prints the changes of each Python 2 file of the directory, and asks before it writes them.
    The old text stays in FILE.python2. A config.json of the HIPS variant becomes a config.pb.

    \b
    Examples:
      spearmint convert braninpy
      spearmint convert --dry-run experiment
    """
    from spearmint.config.hips import read_hips
    from starmint.python2 import ConversionError, MissingFissix, conversion_of

    paths = sorted(directory.glob("*.py"))
    paths = [path for path in paths if path.is_file() and not path.name.startswith(".")]
    try:
        found = [each for path in paths if (each := conversion_of(path))]
    except ConversionError as error:
        kind = SpearmintError if isinstance(error, MissingFissix) else InputError
        raise kind(error.what, error.fix) from error
    config = directory / "config.pb"
    text = "" if config.exists() else read_hips(directory / "config.json")
    if not (found or text):
        click.echo(f"{directory}: nothing to convert.")
        return
    for each in found:
        for line in each.diff():
            click.echo(line)
    if text:
        click.echo(f"{config}:\n{text.rstrip()}")
    if dry_run:
        return
    if not yes and sys.stdin.isatty():
        click.confirm("Write these changes?", abort=True)
    for each in found:
        each.write()
    if text:
        with config.open("x", encoding="utf-8") as file:
            file.write(text)
    names = [*(each.path.name for each in found), *([config.name] if text else [])]
    click.echo(f"Converted {', '.join(names)} in {directory}. Read the changes, then search it.")
