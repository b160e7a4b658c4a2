"""``starcluster convertplugin``."""

from __future__ import annotations

import difflib
from pathlib import Path

import click
import cloup

from starcluster.cli.options import confirm_option
from starcluster.cli.output import sure
from starcluster.errors import InputError
from starcluster.setup.python2 import converted, is_python3


@cloup.command()
@cloup.argument("file", type=click.Path(path_type=Path))
@confirm_option
def convertplugin(file: Path, confirm: bool) -> None:
    """Convert the plugin FILE from Python 2 to Python 3.

    It prints the changes and asks before it writes them. The old text stays in FILE.python2.

    \b
    Examples:
      starcluster convertplugin ~/.starcluster/plugins/myplugin.py
      starcluster convertplugin --confirm myplugin.py
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = file.read_text(encoding="latin-1")  # the default of Python 2
    if is_python3(text, str(file)):
        click.echo(f"{file} is Python 3: nothing to convert.")
        return
    new = converted(text, str(file))
    if new == text:
        click.echo(f"{file}: nothing to convert.")
        return
    old, kept = text.splitlines(), file.with_name(f"{file.name}.python2")
    if kept.exists():
        raise InputError(f"{kept} already exists", "Rename or remove it; nothing was changed.")
    for line in difflib.unified_diff(old, new.splitlines(), str(kept), str(file), lineterm=""):
        click.echo(line)
    sure(f"Write these changes to {file}?", confirmed=confirm)
    kept.write_bytes(file.read_bytes())
    file.write_text(new, encoding="utf-8")
    click.echo(f"Converted {file}; the old text is in {kept}. Read it, and test it on a cluster.")
