"""``starcluster convertplugin``."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from starcluster.cli.options import confirm_option
from starcluster.cli.output import sure
from starcluster.setup.python2 import conversion_of


@cloup.command()
@cloup.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@confirm_option
def convertplugin(file: Path, confirm: bool) -> None:
    """Convert the plugin FILE from Python 2 to Python 3.

    It prints the changes and asks before it writes them. The old text stays in FILE.python2.

    \b
    Examples:
      starcluster convertplugin ~/.starcluster/plugins/myplugin.py
      starcluster convertplugin --confirm myplugin.py
    """
    found = conversion_of(file)
    if found is None:
        click.echo(f"{file}: nothing to convert.")
        return
    for line in found.diff():
        click.echo(line)
    sure(f"Write these changes to {file}?", confirmed=confirm)
    found.write()
    click.echo(
        f"Converted {file}; the old text is in {found.kept}. Read it, and test it on a cluster."
    )
