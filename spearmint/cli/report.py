"""``spearmint report``: write plots and an HTML page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import cloup

from spearmint.cli.options import config_argument, region_option, storage_option


@cloup.command()
@config_argument
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write to this folder. Default: DIR/report.",
)
@region_option
@storage_option
def report(config: Path, output: Path | None, region: str | None, storage: str | None) -> None:
    """Write an HTML page about a search, with plots as PNG files.

    The page opens offline.

    \b
    Examples:
      spearmint report examples/digits
      spearmint report --output /tmp/digits-report examples/digits
    """
    from spearmint.html_report import write_report
    from spearmint.store.session import read_sessions

    sessions = read_sessions(config, storage, region)
    folder = output or sessions[0].layout.report
    page = write_report(sessions, folder, on_region=partial(click.echo, err=True))
    click.echo(f"Report: {page}")
