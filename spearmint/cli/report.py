"""``spearmint report``: a folder with plots and an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from spearmint.cli.options import config_argument, storage_option
from spearmint.html_report import write_report
from spearmint.session import read_session


@click.command()
@config_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The folder; default: DIR/report."
)
@storage_option
def report(config: Path, output: Path | None, storage: str | None) -> None:
    """Write plots (PNG) and a page (HTML, opens offline) on the search in DIR.

    \b
    Examples:
      spearmint report examples/digits
      spearmint report --output /tmp/digits-report examples/digits
    """
    session = read_session(config, storage)
    page = write_report(session, output or session.layout.report)
    click.echo(f"Report: {page}")
