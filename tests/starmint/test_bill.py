"""The bill of a cluster: integrals of prices, unknown ends, and files of other users."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from starmint.bill import (
    Bill,
    BillError,
    Ledger,
    NodeRun,
    Price,
    bill_from_text,
    bill_text,
    read_bill,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def run(start: float, end: float | None = None, *, spot: bool = True, type_: str = "g5") -> NodeRun:
    return NodeRun(
        id=f"i-{start}",
        alias="node001",
        type=type_,
        zone="a",
        spot=spot,
        start=at(start),
        seen=at(start),
        end=None if end is None else at(end),
    )


PRICES = (
    Price(type="g5", zone="", time=at(0), dollars=1.0),
    Price(type="g5", zone="a", time=at(-9), dollars=0.2),
    Price(type="g5", zone="a", time=at(2), dollars=0.6),
    Price(type="g5", zone="b", time=at(1), dollars=99.0),
    Price(type="g5", zone="a", time=at(3), dollars=0.1),
)


def bill(*runs: NodeRun, updated: float = 100.0) -> Bill:
    return Bill(cluster="gpu", region="r", updated=at(updated), runs=runs, prices=PRICES)


def dollars(found: Bill, since: float, until: float, *, careful: bool = False) -> float:
    ledger = Ledger(found, at(until), careful=careful)
    return ledger.total(at(since)).dollars


def test_a_spot_node_costs_each_price_of_its_zone_for_as_long_as_it_holds() -> None:
    assert dollars(bill(run(1, 4)), 0, 9) == pytest.approx(0.2 + 0.6 + 0.1)
    part = Ledger(bill(run(1, 4)), at(9)).total(at(2.5), at(3.5))
    assert (part.dollars, part.hours) == (pytest.approx(0.3 + 0.05), 1.0)
    assert dollars(bill(run(1, 4, spot=False)), 0, 9) == pytest.approx(3.0)
    assert dollars(bill(run(1)), 0, 9) == pytest.approx(0.2 + 0.6 + 6 * 0.1)


def test_a_run_of_seconds_costs_a_minute() -> None:
    short = run(0, 0.001, spot=False)
    assert dollars(bill(short), 0, 9) == pytest.approx(1 / 60)
    assert dollars(bill(replace(short, end=None)), 0, 0.001) == pytest.approx(1 / 60)


def test_days_add_up_to_the_whole() -> None:
    found = bill(run(-3, 40.5), run(23.999, 24.0001), run(5, None, spot=False))
    ledger = Ledger(found, at(60))
    days = [ledger.total(at(24 * day), at(24 * day + 24)).dollars for day in range(-1, 3)]
    assert sum(days) == pytest.approx(ledger.total().dollars)


def test_a_node_whose_end_is_unknown_costs_at_least_and_at_most() -> None:
    lost = replace(run(0, spot=False), seen=at(2), gone=at(5))
    assert dollars(bill(lost), 0, 9) == pytest.approx(2.0)
    assert dollars(bill(lost), 0, 9, careful=True) == pytest.approx(5.0)


def test_a_stale_bill_is_careful_with_spot_prices() -> None:
    found = bill(run(3), updated=4 - 1 / 6)
    assert dollars(found, 3, 6) == pytest.approx(0.3)
    assert dollars(found, 3, 6, careful=True) == pytest.approx(0.1 + 2 * 1.0)
    assert Ledger(found, at(5), careful=True).per_hour().dollars == 1.0
    assert Ledger(found, at(5)).per_hour().dollars == 0.1


def test_a_type_without_a_price_is_named_and_one_without_a_spot_price_costs_on_demand() -> None:
    charge = Ledger(bill(run(0, 2, type_="x9"), run(0, 1)), at(3)).total()
    assert (charge.unknown, charge.dollars, charge.hours) == ({"x9"}, 0.2, 3.0)
    early = Ledger(bill(replace(run(0, 1), zone="b")), at(3)).total()
    assert early.dollars == pytest.approx(1.0)


def test_a_free_run_has_hours_only() -> None:
    charge = Ledger(bill(replace(run(0, 0.5), free=True)), at(3)).total()
    assert (charge.dollars, charge.hours) == (0.0, 0.5)


def test_a_bill_comes_back_from_its_file(tmp_path: Path) -> None:
    found = bill(run(0, 1), replace(run(2), gone=at(3)))
    (tmp_path / "bill").write_text(bill_text(found))
    assert read_bill(tmp_path / "bill") == found
    with pytest.raises(FileNotFoundError):
        read_bill(tmp_path / "none")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 2),
        ("updated", "2026-01-01"),
        ("cluster", None),
        ("runs", [{"id": "i-1"}]),
        ("runs", [{**dict.fromkeys(("id", "alias", "type", "zone"), "a"), "start": None}]),
        ("prices", [{"type": "g5", "zone": "", "time": START.isoformat(), "dollars": -1}]),
        (
            "prices",
            [{"type": "g5", "zone": "", "time": START.isoformat(), "dollars": float("nan")}],
        ),
        ("prices", 5),
        ("prices", [{"type": "g5", "zone": "", "time": START.isoformat(), "dollars": 10**400}]),
        ("runs", ["i-1"]),
        ("runs", [None]),
        ("updated", "0001-01-01T00:00:00+14:00"),
        ("updated", "9999-12-31T23:59:59+00:00"),
    ],
)
def test_a_wrong_bill_is_refused(key: str, value: object) -> None:
    found = json.loads(bill_text(bill(run(0))))
    with pytest.raises(BillError):
        bill_from_text(json.dumps(found | {key: value}))
    for text in ("", "[]", "[" * 100000):
        with pytest.raises(BillError):
            bill_from_text(text)


def test_a_bill_that_another_user_can_have_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bill"
    path.write_text(bill_text(bill(run(0))))
    path.chmod(0o666)
    with pytest.raises(BillError, match="another user"):
        read_bill(path)
    path.chmod(0o644)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(BillError, match="link"):
        read_bill(tmp_path / "link")
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(BillError, match="regular"):
        read_bill(tmp_path / "fifo")
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        with pytest.raises(BillError, match="another user"):
            read_bill(path)
