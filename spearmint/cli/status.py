"""``spearmint status``: the state of a search."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spearmint.cli.options import config_argument, json_option, region_option, storage_option


@click.command()
@config_argument
@click.option(
    "--top",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="How many of the best trials to show.",
)
@click.option(
    "--broken",
    "show_broken",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="How many broken ones.",
)
@click.option(
    "--watch", is_flag=True, help="On a terminal: keep it up to date while the search runs."
)
@region_option
@storage_option
@json_option
def status(
    config: Path,
    top: int,
    show_broken: int,
    watch: bool,
    region: str | None,
    storage: str | None,
    as_json: bool,
) -> None:
    """Show trials by state, the best ones, and why others broke, of the search in DIR.

    \b
    Examples:
      spearmint status --watch examples/digits
      spearmint status --json examples/digits
    """
    from spearmint.store.session import read_sessions
    from spearmint.view.progress import make_console
    from spearmint.view.status import status_data, status_screen, watch_status

    sessions = read_sessions(config, storage, region)
    if as_json:
        click.echo(json.dumps(status_data(sessions), indent=2))
        return
    console = make_console()
    if watch and console.is_terminal:
        watch_status(console, sessions, top=top, broken=show_broken)
    else:
        console.print(status_screen(sessions, top=top, broken=show_broken), soft_wrap=True)
