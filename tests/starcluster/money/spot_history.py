"""Spot prices over time, with DescribeSpotPriceHistory as AWS answers it: by page, newest first."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

Step = tuple[str, str, datetime, float]
"""Type, zone, start and dollars per hour."""


@dataclass
class SpotHistory:
    """Prices that change; its ``answer`` is for ``Front.answers``.

    Attributes:
        a_page: Items on one page.
        pages: How many pages were sent.
    """

    steps: list[Step] = field(default_factory=list)
    a_page: int = 3
    pages: int = 0

    def set(self, type_: str, zone: str, time: datetime, dollars: float) -> None:
        """Set the price from ``time`` on."""
        self.steps.append((type_, zone, time, dollars))

    def answer(self, form: dict[str, str]) -> str:
        """Return one page of the response to a request."""
        types = _listed(form, "InstanceType.")
        zones = _listed(form, "Filter.1.Value.")
        start, end = (datetime.fromisoformat(form[key]) for key in ("StartTime", "EndTime"))
        chosen = [
            step
            for step in self._in_force(start, end)
            if (not types or step[0] in types) and (not zones or step[1] in zones)
        ]
        begin = int(form.get("NextToken") or 0)
        page = sorted(chosen, key=lambda step: step[2], reverse=True)[begin : begin + self.a_page]
        self.pages += 1
        more = begin + self.a_page
        token = str(more) if more < len(chosen) else ""
        items = "".join(_item(*step) for step in page)
        return f"<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken>{token}</nextToken>"

    def _in_force(self, start: datetime, end: datetime) -> list[Step]:
        """Return the prices from the one in force at ``start`` to the one in force at ``end``."""
        found = []
        for step in self.steps:
            later = [s[2] for s in self.steps if s[:2] == step[:2] and s[2] > step[2]]
            if step[2] <= end and min(later, default=end) >= start:
                found.append(step)
        return found


def _listed(form: dict[str, str], prefix: str) -> set[str]:
    return {value for key, value in form.items() if key.startswith(prefix)}


def _item(type_: str, zone: str, time: datetime, dollars: float) -> str:
    return (
        f"<item><instanceType>{type_}</instanceType><productDescription>Linux/UNIX"
        f"</productDescription><spotPrice>{dollars:.6f}</spotPrice><timestamp>"
        f"{time:%Y-%m-%dT%H:%M:%S.000Z}</timestamp><availabilityZone>{zone}"
        "</availabilityZone></item>"
    )
