"""Read what the cluster has cost, from the bill that ``starcluster`` writes on its master."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from spearmint.errors import InputError
from starmint.bill import PUBLISHED, Bill, BillError, Ledger, read_bill


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a search is charged.

    Attributes:
        spent: Dollars since its start.
        per_hour: Dollars per hour of the nodes that run.
        doubt: Why the dollars can be wrong; empty if they are at most these.
    """

    spent: float
    per_hour: float
    doubt: str = ""


class Meter(Protocol):
    """Tells what the nodes cost."""

    def read(self) -> Reading:
        """Return the dollars until now."""


class BillMeter:
    """Charges the whole cluster by wall time since a time: idle, booting and lost nodes too.

    The bill is read carefully: a node whose end nobody saw counts until it was seen not to run,
    and if the bill is not updated, a spot node costs at least its on-demand price.
    """

    def __init__(self, path: Path, since: datetime) -> None:
        """Read the bill.

        Raises:
            InputError: There is no bill, it is not trusted, or it lacks a price.
        """
        self.path, self.since = path, since
        self._changed = -1
        self.bill = self._first()
        if doubt := self.read().doubt:
            raise InputError(
                f"the bill of the cluster is incomplete: {doubt}",
                "Allow pricing:GetProducts to the credentials that start the cluster.",
            )

    def _first(self) -> Bill:
        try:
            return read_bill(self.path)
        except FileNotFoundError as error:
            raise InputError(
                f"no bill of a cluster at {self.path}, so --budget cannot count dollars",
                "Run spearmint on the master of a cluster, and keep its balancer running: "
                "starcluster balance --install TAG. Without a cluster, use --max-cost with "
                "--cost-per-hour.",
            ) from error
        except BillError as error:
            raise InputError(f"the bill of the cluster is not usable: {error}") from error

    def read(self) -> Reading:
        """Return the dollars until now, by the last bill that could be read."""
        with contextlib.suppress(OSError, BillError):  # the last bill stays an upper limit
            changed = self.path.stat().st_mtime_ns
            if changed != self._changed:
                self.bill = read_bill(self.path)
                self._changed = changed
        return reading(self.bill, self.since, datetime.now(UTC))


def reading(bill: Bill, since: datetime, now: datetime) -> Reading:
    """Return what a bill charges between two times."""
    ledger = Ledger(bill, now, careful=True)
    charge, rate = ledger.total(since), ledger.per_hour()
    unknown = charge.unknown | rate.unknown
    doubt = f"the price of {', '.join(sorted(unknown))} is not known" if unknown else ""
    return Reading(spent=charge.dollars, per_hour=rate.dollars, doubt=doubt)


DEFAULT_BILL = PUBLISHED
