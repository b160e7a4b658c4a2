"""What nodes cost: typed prices, the output of ``starcluster prices --json``, or the bill."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spearmint.errors import InputError, SpearmintError
from starmint.bill import Bill, BillError, Ledger, read_bill

_PRICES_S = 300.0
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FIX = (
    "Give prices: --price g5.xlarge=1.006, or a file of starcluster prices --json with "
    "--prices FILE."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOffer:
    """A kind of node.

    Attributes:
        dollars: Per hour of one node.
        gpus: Of one node; a fraction for a part of a GPU.
        spot: Whether AWS can take the node back.
        on_demand: Dollars per hour of the master of spot nodes, which starcluster does not start
            as a spot node; None for the same as the others.
        speed: How many times faster trials are than the durations say.
    """

    type: str
    dollars: float
    gpus: float = 1.0
    spot: bool = False
    on_demand: float | None = None
    speed: float = 1.0

    def per_hour(self, nodes: int) -> float:
        """Return dollars per hour of a cluster; one of its nodes is the master."""
        first = self.dollars if self.on_demand is None else self.on_demand
        return first + self.dollars * (nodes - 1)

    @property
    def label(self) -> str:
        """Name in tables, as in ``starcluster cost``."""
        return f"{self.type} spot" if self.spot else self.type


def parse_price(text: str) -> NodeOffer:
    """Return the offer of ``TYPE=DOLLARS`` or ``TYPE=DOLLARS:GPUS``.

    Raises:
        ValueError: ``text`` is something else.
    """
    name, equals, rest = text.partition("=")
    price, colon, gpus = rest.partition(":")
    try:
        dollars, number = float(price), float(gpus) if colon else 1.0
    except ValueError:
        dollars, number = math.nan, math.nan
    if not (equals and name.strip() and 0 <= dollars < math.inf and 0 < number < math.inf):
        raise ValueError(
            f"invalid price {text!r}: expected TYPE=DOLLARS or TYPE=DOLLARS:GPUS, as in "
            "g5.12xlarge=5.67:4"
        )
    return NodeOffer(type=name.strip(), dollars=dollars, gpus=number)


def read_prices(path: Path) -> list[NodeOffer]:
    """Return the offers in a file that ``starcluster prices --json`` wrote. Raises InputError."""
    try:
        return offers_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is not the output of starcluster prices --json: {error}",
            f"Write it: starcluster prices --json > {path}",
        ) from error


def ask_starcluster(gpu: str = "") -> list[NodeOffer]:
    """Return the offers of ``starcluster prices``, which asks AWS.

    Raises:
        SpearmintError: The command is not installed, or AWS does not answer.
    """
    program = shutil.which("starcluster")
    if program is None:
        raise InputError("no prices of nodes: the command starcluster is not installed", _FIX)
    argv = [program, "prices", "--json", *(["--gpu", gpu] if gpu else [])]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PRICES_S,
            check=False,
        )  # fmt: skip
        return offers_of(json.loads(done.stdout))  # it exits with 1 if a part is missing
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SpearmintError(f"no prices of nodes: {error}", _FIX) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        lines = done.stderr.strip().splitlines() or ["starcluster prices printed no prices"]
        raise SpearmintError(f"no prices of nodes: {lines[0]}", _FIX) from error


def offers_of(found: Mapping[str, Any]) -> list[NodeOffer]:
    """Return the offers in the JSON of ``starcluster prices``: on demand and spot."""
    offers = []
    for row in found["offers"]:
        name, gpus = row["type"], _number(row, "gpus")
        if _TYPE.fullmatch(name) is None:  # it becomes a word of a command
            raise ValueError(f"invalid type {name!r}")
        if gpus is None:
            raise ValueError(f"{name} has no number of gpus")
        on_demand, dollars = _number(row, "on_demand"), _number(row, "spot")
        if on_demand is not None:
            offers.append(NodeOffer(type=name, dollars=on_demand, gpus=gpus))
        if dollars is not None:
            dollars = max(dollars, _number(row, "spot_p95") or 0.0)  # at which it probably stays
            offers.append(
                NodeOffer(type=name, dollars=dollars, gpus=gpus, spot=True, on_demand=on_demand)
            )
    return cheapest(offers)


def _number(row: Mapping[str, Any], key: str) -> float | None:
    if row.get(key) is None:
        return None
    number = float(row[key])
    if not 0 <= number < math.inf:
        raise ValueError(f"invalid {key} {row[key]!r} of {row['type']}")
    return number


def cheapest(offers: Iterable[NodeOffer]) -> list[NodeOffer]:
    """Return each kind of node once, as cheap as its cheapest zone."""
    found: dict[str, NodeOffer] = {}
    for offer in sorted(offers, key=lambda offer: offer.dollars):
        found.setdefault(offer.label, offer)
    return list(found.values())


def bill_offers(path: Path, now: datetime | None = None) -> list[NodeOffer]:
    """Return the kinds of nodes that run in the cluster of a bill; empty without a bill."""
    try:
        bill = read_bill(path)
    except FileNotFoundError:
        return []
    except BillError as error:
        raise InputError(f"the bill of the cluster is not usable: {error}", _FIX) from error
    return cheapest(_running(bill, now or datetime.now(UTC)))


def _running(bill: Bill, now: datetime) -> Iterable[NodeOffer]:
    for run in bill.runs:
        one = Bill(
            cluster=bill.cluster,
            region=bill.region,
            updated=bill.updated,
            runs=(run,),
            prices=bill.prices,
        )
        rate = Ledger(one, now, careful=True).per_hour()
        if run.runs and not rate.unknown:
            yield NodeOffer(type=run.type, dollars=rate.dollars, spot=run.spot)
