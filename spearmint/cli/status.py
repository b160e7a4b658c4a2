"""``spearmint status``: show the state of a search."""

from __future__ import annotations

import json
from pathlib import Path

import click
import cloup

from spearmint.cli.options import config_argument, json_option, region_option, storage_option
from spearmint.cli.setting_options import PlainOption


@cloup.command()
@config_argument
@click.option(
    "--top",
    cls=PlainOption,
    type=click.IntRange(0),
    metavar="N",
    default=5,
    help="Show the N best trials. Default: 5.",
)
@click.option(
    "--broken",
    "show_broken",
    cls=PlainOption,
    type=click.IntRange(0),
    metavar="N",
    default=3,
    help="Show the reason and the last output of the last N failed (broken) trials. Default: 3.",
)
@click.option(
    "--watch", is_flag=True, help="Update the output until the search ends. Needs a terminal."
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
    """Show the state of a search: trials by state, the best, and why others failed.

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
