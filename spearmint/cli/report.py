"""``spearmint report``: a folder with plots and an HTML page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from spearmint.cli.options import config_argument, region_option, storage_option


@click.command()
@config_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The folder; default: DIR/report."
)
@region_option
@storage_option
def report(config: Path, output: Path | None, region: str | None, storage: str | None) -> None:
    """Write plots (PNG) and a page (HTML, opens offline) on the search in DIR.

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
