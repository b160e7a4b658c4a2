"""``starcluster prices``: types with GPUs and what they cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import cloup

from starcluster.cli.app import App
from starcluster.cli.options import Number, json_option
from starcluster.cli.output import say_json, table
from starcluster.errors import AwsError
from starcluster.money import Offer, Rate, find_offers, read_rates

_PERMISSIONS = {
    "on_demand": ("on-demand prices", "pricing:GetProducts"),
    "spot": ("spot prices", "ec2:DescribeSpotPriceHistory"),
}
_HEADINGS = (
    "TYPE", "GPUS", "GPU", "GIB", "GENERATION", "ZONE", "ON DEMAND", "SPOT", "MEDIAN", "P95",
    "GPU-HOUR",
)  # fmt: skip


@cloup.command()
@cloup.option(
    "--gpu",
    default="",
    metavar="NAME",
    help="Show only types whose GPU has this in its name, e.g. h100. Default: all NVIDIA GPUs.",
)
@cloup.option(
    "--zones",
    "by_zone",
    is_flag=True,
    help="Show each zone of a type. Without it, spot prices are those of the zone where the type "
    "is cheapest now.",
)
@cloup.option(
    "-d",
    "--days",
    type=Number(click.IntRange(1, 90)),
    default=7,
    metavar="N",
    help="Take median and p95 of the spot prices of this many days, from 1 to 90. Default: 7.",
)
@cloup.option(
    "--rate",
    "rate_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Add the dollars of one training, and sort by them. FILE is the CSV or JSON of a "
    "benchmark: type, and seconds of a training or trainings per_hour; gpus if it uses fewer "
    "than all GPUs of the type. Default: no such column.",
)
@json_option
@click.pass_obj
def prices(
    app: App, gpu: str, by_zone: bool, days: int, rate_file: Path | None, as_json: bool
) -> None:
    """List instance types with GPUs and their prices, the cheapest GPU-hour first.

    Dollars per hour: on demand, spot now, and what spot did not exceed for 50 % (median) and 95 %
    (p95) of the time. GPU-HOUR is the lower one of on demand and spot now, for each GPU. Prices
    are those of Linux without disks, traffic and tax. It exits with 1 if AWS does not answer for a
    part of the prices; the others are listed.

    \b
    Examples:
      starcluster prices --gpu h100 --days 30
      starcluster -r eu-west-1 prices --zones --rate benchmark.csv
    """
    rates = read_rates(rate_file) if rate_file else {}
    end = datetime.now(UTC)
    found = find_offers(
        app.ec2, start=end - timedelta(days=days), end=end, gpu=gpu, by_zone=by_zone, rates=rates
    )
    if as_json:
        say_json(
            {
                "region": app.ec2.region,
                "days": days,
                "offers": [asdict(offer) for offer in found.offers],
                "missing": {name: str(error) for name, error in found.missing.items()},
            }
        )
    else:
        click.echo(f"{app.ec2.region}, dollars per hour, spot of the last {days} days")
        headings = (*_HEADINGS, "TRAINING") if rates else _HEADINGS
        click.echo(table(headings, [_row(offer, rated=bool(rates)) for offer in found.offers]))
    _note_unused(rates, found.offers)
    for name, error in found.missing.items():
        click.echo(_about_missing(name, error), err=True)
    if found.missing:
        sys.exit(1)


def _row(offer: Offer, *, rated: bool) -> tuple[str, ...]:
    cells = (
        offer.type,
        f"{offer.gpus:g}",
        offer.gpu,
        f"{offer.gpu_memory_gib:g}",
        offer.generation,
        offer.zone,
        _dollars(offer.on_demand),
        _dollars(offer.spot),
        _dollars(offer.spot_median),
        _dollars(offer.spot_p95),
        _dollars(offer.dollars_per_gpu_hour),
    )
    return (*cells, _dollars(offer.dollars_per_training)) if rated else cells


def _dollars(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _note_unused(rates: Mapping[str, Rate], offers: Sequence[Offer]) -> None:
    unused = sorted(rates.keys() - {offer.type for offer in offers})
    if unused:
        click.echo(f"Not in this list, so without price: {', '.join(unused)}", err=True)


def _about_missing(name: str, error: AwsError) -> str:
    what, permission = _PERMISSIONS[name]
    return f"Without {what}, which need the permission {permission}: {error}"
