"""On-demand and spot prices of instances in dollars per hour, from the AWS price list."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from starcluster.aws.ec2 import Ec2
from starcluster.errors import AwsError, CredentialsError, PermissionDenied
from starcluster.threadpool import ThreadPool

_AT_ONCE = 8  # AWS throttles requests for prices


def on_demand(ec2: Ec2, types: Iterable[str]) -> dict[str, float]:
    """Return dollars per hour of each type on Linux, without types of unknown price."""
    found: dict[str, float] = {}
    for name in sorted(set(types)):
        # The price is only information, and many users have no permission to ask for prices.
        with contextlib.suppress(AwsError):
            found |= _price_of(ec2, name)
    return found


def on_demand_or_error(ec2: Ec2, types: Iterable[str]) -> tuple[dict[str, float], AwsError | None]:
    """Return the prices of :func:`on_demand`, and the first error of AWS; asks in parallel."""

    def ask(name: str) -> dict[str, float] | AwsError:
        try:
            return _price_of(ec2, name)
        except AwsError as error:
            return error

    first, *rest = sorted(set(types)) or ("",)
    answers = [ask(first)] if first else []
    if not isinstance(next(iter(answers), None), (PermissionDenied, CredentialsError)):
        answers += ThreadPool(_AT_ONCE).map(ask, rest)
    found: dict[str, float] = {}
    for answer in answers:
        found |= {} if isinstance(answer, AwsError) else answer
    return found, next((each for each in answers if isinstance(each, AwsError)), None)


def _price_of(ec2: Ec2, name: str) -> dict[str, float]:
    products = ec2.pages("pricing", "GetProducts", "PriceList", **_question(name, ec2.region))
    price = price_in([json.loads(product) for product in products])
    return {} if price is None else {name: price}


def spot(ec2: Ec2, types: Iterable[str]) -> dict[str, float]:
    """Return the lowest current spot price of each type, in dollars per hour."""
    found: dict[str, float] = {}
    for (name, _), price in spot_by_zone(ec2, types).items():
        found[name] = min(price, found.get(name, price))
    return found


def spot_by_zone(ec2: Ec2, types: Iterable[str]) -> dict[tuple[str, str], float]:
    """Return the current spot prices by type and zone, in dollars per hour."""
    now = datetime.now(UTC)
    wanted = sorted(set(types))
    history = ec2.spot_prices(wanted, start=now, end=now) if wanted else ()
    return {(each.type, each.zone): each.price for each in history}


def price_in(products: Iterable[Mapping[str, Any]], *, unit: str = "Hrs") -> float | None:
    """Return the lowest positive price per ``unit`` in items of GetProducts; None without one."""
    prices = [
        float(dimension["pricePerUnit"]["USD"])
        for product in products
        for term in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term.get("priceDimensions", {}).values()
        if dimension.get("unit") == unit and "USD" in dimension.get("pricePerUnit", {})
    ]
    return min((price for price in prices if price > 0), default=None)


def _question(name: str, region: str) -> dict[str, Any]:
    wanted = {
        "instanceType": name,
        "regionCode": region,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "tenancy": "Shared",
        "capacitystatus": "Used",
    }
    return question(wanted)


def question(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of GetProducts for EC2 products with these fields."""
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()
    ]
    return {"ServiceCode": "AmazonEC2", "Filters": filters}
