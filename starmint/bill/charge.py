"""What runs cost: the integral of their prices over time; no I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from starmint.bill.model import Bill, NodeRun, Price

LEAST = timedelta(seconds=60)
"""AWS bills at least a minute of each run."""
STALE = timedelta(minutes=10)
"""Age of a bill after which a spot price in it can be out of date."""
FIRST, LAST = (time.replace(tzinfo=UTC) for time in (datetime.min, datetime.max))


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Dollars and hours of runs.

    Attributes:
        unknown: Types of which a price is missing; their time is in ``hours`` only.
    """

    dollars: float = 0.0
    hours: float = 0.0
    unknown: frozenset[str] = frozenset()

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            dollars=self.dollars + other.dollars,
            hours=self.hours + other.hours,
            unknown=self.unknown | other.unknown,
        )


class Ledger:
    """The charges of a bill.

    Attributes:
        careful: Whether to charge what the bill can be at most: a run with an unknown end until it
            was seen not to run, instead of until it was last seen running; and a spot node at least
            at its on-demand price once the bill is older than ``STALE``.
    """

    def __init__(self, bill: Bill, now: datetime, *, careful: bool = False) -> None:
        """Read the prices of ``bill``; runs that have not ended are charged until ``now``."""
        self.bill, self.now, self.careful = bill, now, careful
        self._steps: dict[tuple[str, str], list[Price]] = defaultdict(list)
        for price in sorted(bill.prices, key=lambda price: price.time):
            self._steps[price.type, price.zone].append(price)

    def total(self, since: datetime = FIRST, until: datetime = LAST) -> Charge:
        """Return the charge of all runs between two times."""
        return total(self.charge(run, since, until) for run in self.bill.runs)

    def charge(self, run: NodeRun, since: datetime = FIRST, until: datetime = LAST) -> Charge:
        """Return the charge of one run between two times."""
        begin = max(run.start, since)
        end = min(max(self.end_of(run), run.start + LEAST), until)
        if end <= begin:
            return Charge()
        hours = _hours(end - begin)
        if run.free:
            return Charge(hours=hours)
        dollars, unknown = 0.0, frozenset[str]()
        for length, price in self._prices(run, begin, end):
            if price is None:
                unknown = frozenset({run.type})
            else:
                dollars += price * _hours(length)
        return Charge(dollars=dollars, hours=hours, unknown=unknown)

    def end_of(self, run: NodeRun) -> datetime:
        """Return when a run ended, or ``now`` if it still runs."""
        if run.end is not None:
            return run.end
        if run.gone is not None:
            return run.gone if self.careful else run.seen
        return self.now

    def per_hour(self) -> Charge:
        """Return what an hour of the nodes that run costs now."""
        return total(self._rate(run) for run in self.bill.runs if run.runs)

    def _rate(self, run: NodeRun) -> Charge:
        prices = [
            price for _, price in self._prices(run, self.now, self.now + timedelta(seconds=1))
        ]
        if run.free:
            return Charge(hours=1.0)
        if prices[-1] is None:
            return Charge(hours=1.0, unknown=frozenset({run.type}))
        return Charge(dollars=prices[-1], hours=1.0)

    def _prices(
        self, run: NodeRun, begin: datetime, end: datetime
    ) -> Iterator[tuple[timedelta, float | None]]:
        """Yield the parts of a time with the price of each; None for an unknown price."""
        on_demand = self._on_demand(run)
        if not run.spot:
            yield end - begin, on_demand
            return
        steps = self._steps.get((run.type, run.zone), [])
        times = [step.time for step in steps]
        stale = self.bill.updated + STALE
        cuts = set(times[bisect_right(times, begin) : bisect_left(times, end)])
        cuts |= {stale} if self.careful and begin < stale < end else set()
        for since, until in pairwise([begin, *sorted(cuts), end]):
            past = bisect_right(times, since)
            price = steps[past - 1].dollars if past else on_demand
            if self.careful and since >= stale and price is not None:
                price = max(price, on_demand or 0.0)
            yield until - since, price

    def _on_demand(self, run: NodeRun) -> float | None:
        found = self._steps.get((run.type, ""))
        return found[-1].dollars if found else None


def total(charges: Iterable[Charge]) -> Charge:
    """Return the sum of charges."""
    return sum(charges, Charge())


def _hours(length: timedelta) -> float:
    return length / timedelta(hours=1)
