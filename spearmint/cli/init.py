"""``spearmint init``: write an experiment that runs."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from spearmint.errors import next_command
from spearmint.templates import TEMPLATES, copy_template

_DEFAULT = next(iter(TEMPLATES))
_LIST = "\n".join(f"      {each.name:10} {each.about}" for each in TEMPLATES.values())


@cloup.command(
    help=f"""Write config.pb and a wrapper that run at once, to begin a search with.

    No file is overwritten.

    \b
    Templates:
{_LIST}

    \b
    Examples:
      spearmint init experiment
      spearmint init --template=pytorch experiment
    """
)
@cloup.argument(
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of the new experiment; it is created if necessary.",
)
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default=_DEFAULT,
    help=f"Copy this template. Default: {_DEFAULT}.",
)
def init(directory: Path, template: str) -> None:
    """Write the files of a template."""
    chosen = TEMPLATES[template]
    files = copy_template(chosen, directory)
    click.echo(f"Wrote {' and '.join(map(str, files))}.")
    if missing := chosen.missing():
        from starmint import install_command

        click.echo(
            f"It needs {', '.join(missing)}, which is not installed. "
            f"Install it: {install_command(*missing)}"
        )
    click.echo(f"Search: {next_command('-n', 2, '--max-finished-jobs=20', directory)}")
