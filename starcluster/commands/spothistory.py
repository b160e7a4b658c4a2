"""``starcluster spothistory``: past prices of spot instances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import click
import cloup

from starcluster.aws.model import SpotPrice
from starcluster.balance.stats.plots import write_plot
from starcluster.cli.app import App
from starcluster.cli.options import Number, json_option
from starcluster.cli.output import say_json, table
from starcluster.config.syntax import short
from starcluster.errors import InputError, did_you_mean

_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneHistory:
    """Prices of one zone in dollars per hour; ``mean`` is weighted by time."""

    zone: str
    now: float
    mean: float
    lowest: float
    highest: float


@cloup.command()
@cloup.argument("type_", metavar="TYPE")
@cloup.option(
    "-z",
    "--zone",
    "zones",
    multiple=True,
    metavar="ZONE",
    help="Show only this zone. Repeatable. Default: all zones.",
)
@cloup.option(
    "-d",
    "--days",
    type=Number(click.IntRange(1, 90)),
    default=30,
    metavar="N",
    help="Show this many days before the end, from 1 to 90. Default: 30.",
)
@cloup.option(
    "-s",
    "--start",
    "--start-time",
    "start",
    type=_TIME,
    metavar="TIME",
    help="Start at this UTC time, e.g. 2026-01-31 or 2026-01-31T08:00:00. Default: see --days.",
)
@cloup.option(
    "-e",
    "--end",
    "--end-time",
    "end",
    type=_TIME,
    metavar="TIME",
    help="End at this UTC time. Default: now.",
)
@cloup.option("-p", "--plot", is_flag=True, help="Draw the prices to spothistory-TYPE.svg.")
@json_option
@click.pass_obj
def spothistory(
    app: App,
    type_: str,
    zones: tuple[str, ...],
    days: int,
    start: datetime | None,
    end: datetime | None,
    plot: bool,
    as_json: bool,
) -> None:
    """Show past prices of spot instances of TYPE in each zone.

    \b
    Examples:
      starcluster spothistory g5.xlarge
      starcluster spothistory p4d.24xlarge --days 7 --zone us-east-1a --plot
    """
    last = end.replace(tzinfo=UTC) if end else datetime.now(UTC)
    first = start.replace(tzinfo=UTC) if start else last - timedelta(days=days)
    if first >= last:
        raise InputError(f"--start {first:%Y-%m-%dT%H:%M} is not before {last:%Y-%m-%dT%H:%M}")
    prices = app.ec2.spot_prices([type_], start=first, end=last, zones=zones)
    if not prices:
        _refuse(app, type_)
    if plot:
        file = Path(f"spothistory-{type_}.svg")
        write_plot(file, prices, title=f"{type_}, spot, {app.ec2.region}", end=last)
        click.echo(f"Wrote {short(file.absolute())}", err=True)
    found = summary(prices, start=first, end=last)
    if as_json:
        say_json([{"zone": e.zone, "price": e.price, "time": e.time} for e in prices])
        return
    rows = [(e.zone, *(f"{v:.4f}" for v in (e.now, e.mean, e.lowest, e.highest))) for e in found]
    click.echo(f"{type_}, dollars per hour, {first:%Y-%m-%d} to {last:%Y-%m-%d}")
    click.echo(table(("ZONE", "NOW", "MEAN", "LOWEST", "HIGHEST"), rows))


def summary(
    prices: Iterable[SpotPrice], *, start: datetime, end: datetime
) -> Sequence[ZoneHistory]:
    """Return the history of each zone, cheapest current price first.

    Each price applies until the next one.
    """
    by_zone: dict[str, list[SpotPrice]] = defaultdict(list)
    for price in sorted(prices, key=lambda price: price.time):
        by_zone[price.zone].append(price)
    found = []
    for zone, steps in by_zone.items():
        times = [max(price.time, start) for price in steps] + [end]
        held = [(b - a).total_seconds() for a, b in pairwise(times)]
        values = [price.price for price in steps]
        total = sum(held)
        weighted = sum(value * time for value, time in zip(values, held, strict=True))
        found.append(
            ZoneHistory(
                zone=zone,
                now=values[-1],
                mean=weighted / total if total else values[-1],
                lowest=min(values),
                highest=max(values),
            )
        )
    return sorted(found, key=lambda price: (price.now, price.zone))


def _refuse(app: App, type_: str) -> None:
    known = app.ec2.offered_types()
    if type_ in known:
        raise InputError(f"{type_} has no spot price in {app.ec2.region} in this period")
    fix = did_you_mean(type_, known) or "Choose another region with -r."
    raise InputError(f"{app.ec2.region} does not offer '{type_}'", fix)
