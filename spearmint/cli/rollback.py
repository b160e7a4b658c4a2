"""``spearmint rollback``: make the model current that was current before."""

from __future__ import annotations

import json
from pathlib import Path

import click
import cloup

from spearmint.cli.options import config_argument, json_option
from spearmint.cli.stores import model_stores
from spearmint.errors import InputError


@cloup.command()
@config_argument
@click.option("--region", metavar="NAME", help="Region of the model. Default: the only one.")
@json_option
def rollback(config: Path, region: str | None, as_json: bool) -> None:
    """Make the model current that was current before.

    The version that is left is not promoted again, unless you name it: spearmint promote --version.

    \b
    Examples:
      spearmint rollback examples/regions
      spearmint rollback --region=us examples/regions
    """
    _, stores = model_stores(config, region)
    if len(stores) > 1:
        names = ", ".join(store.folder.name for store in stores)
        raise InputError("no region given", f"Add --region with one of: {names}.")
    left, current = stores[0].roll_back()
    if as_json:
        click.echo(json.dumps({"left": left.number, "current": current.number}, indent=2))
        return
    click.echo(f"{stores[0].folder.name}: version {current.number} replaces version {left.number}")
