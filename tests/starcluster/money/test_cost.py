"""``starcluster cost``: a day of jumping spot prices against an integral by hand; records."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.aws import responses
from starcluster.aws.ec2 import Ec2
from starcluster.errors import ClusterError
from starcluster.money import published
from starcluster.money.bill_store import BillStore
from starcluster.money.observe import merged
from starcluster.money.record import record
from starcluster.money.statement import doubts, statement
from starmint.bill import Bill, bill_text, read_bill
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front
from tests.starcluster.money.day import Day

HOURLY = {"m5.large": 0.096, "g5.xlarge": 1.006}


@pytest.fixture
def day(front: Front) -> Day:
    """A day that began 26 hours ago, with a new spot price every 10 to 70 minutes."""
    found = Day(datetime.now(UTC).replace(microsecond=0) - timedelta(hours=26))
    chance = random.Random(4)
    for zone in ("us-east-1a", "us-east-1b"):
        time = found.now - timedelta(hours=3)
        while time < found.now + timedelta(hours=30):
            dollars = round(chance.uniform(0.2, 1.0), 4)
            found.history.set("g5.xlarge", zone, time, dollars)
            time += timedelta(seconds=chance.randint(600, 4200))
    found.history.a_page = 20
    front.hourly = HOURLY
    front.answers["DescribeSpotPriceHistory"] = found.history.answer
    front.answers["DescribeInstances"] = found.instances
    front.answers["DescribeSpotInstanceRequests"] = found.requests
    return found


@pytest.fixture
def look(day: Day, front: Front, client_to: Callable[[str, str], Ec2]) -> Callable[[], Any]:
    """A function that records the cluster at the time of the day, as commands do."""
    ec2 = client_to(front.address, "us-east-1")
    return lambda: record(ec2, "gpu", now=day.now)


def by_hand(day: Day, zone: str, begin: datetime, end: datetime) -> float:
    """Add the price of each second of a spot node."""
    steps = sorted((time, price) for _, at, time, price in day.history.steps if at == zone)
    dollars, price = 0.0, 0.0
    for second in range(round((end - begin).total_seconds())):
        now = begin + timedelta(seconds=second)
        while steps and steps[0][0] <= now:
            price = steps.pop(0)[1]
        dollars += price / 3600
    return dollars


def a_day(day: Day, look: Callable[[], Any]) -> dict[str, float]:
    """Live through a day; return the dollars of each node by hand."""
    begin = day.now
    spot: dict[str, tuple[str, datetime]] = {}

    def launch(alias: str, zone: str = "us-east-1a") -> Any:
        spot[alias] = (zone, day.now)
        return day.launch(alias, "g5.xlarge", zone, spot=True)

    master = day.launch("master", "m5.large", spot=False)
    one, two = launch("node001"), launch("node002", "us-east-1b")
    look()
    day.wait(3.5123)
    three, four = launch("node003"), launch("node004")  # addnode
    look()
    day.wait(0.4)
    day.end(four, lost=True)  # within its first hour: AWS bills nothing
    day.wait(0.0151)
    look()
    day.wait(3.2)
    day.end(one, lost=True)
    dollars = {"node001": by_hand(day, *spot["node001"], day.now), "node004": 0.0}
    day.wait(0.0167)  # a check of the balancer
    look()
    day.wait(5)
    for alias, node in (("node002", two), ("node003", three)):
        day.end(node)
        dollars[alias] = by_hand(day, *spot[alias], day.now)
    day.stop(master)
    master_hours = (day.now - begin) / timedelta(hours=1)
    look()
    day.wait(6)
    day.start(master)
    restarted = day.now
    five = launch("node005", "us-east-1b")
    look()
    day.wait(2.7001)
    day.end(five)
    day.end(master)
    dollars["node005"] = by_hand(day, *spot["node005"], day.now)
    master_hours += (day.now - restarted) / timedelta(hours=1)
    dollars["master"] = master_hours * HOURLY["m5.large"]
    look()
    return dollars


def test_the_bill_of_a_day_is_within_a_cent_of_an_integral_by_hand(
    big: Run, day: Day, look: Callable[[], Any]
) -> None:
    dollars = a_day(day, look)
    day.wait(3)  # AWS has forgotten all instances
    assert day.instances({"Filter.1.Value.1": "terminated"}).count("<instanceId>") == 0
    done = big("cost", "gpu", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {node["node"]: node["dollars"] for node in found["nodes"]} == pytest.approx(
        dollars, abs=0.01
    )
    assert found["dollars"] == pytest.approx(sum(dollars.values()), abs=0.01)
    assert sum(found["days"].values()) == pytest.approx(found["dollars"])
    assert found["notes"] == []
    assert found["at_most"] == pytest.approx(found["dollars"])
    assert "tax" in found["left_out"]
    assert day.history.pages > 8
    text = big("cost", "gpu").stdout
    assert f"${sum(dollars.values()):.2f}" in text.splitlines()[0]
    assert text.splitlines()[1].split()[:3] == ["node", "type", "state"]


def test_a_running_cluster_costs_until_now(big: Run, day: Day, front: Front) -> None:
    day.launch("master", "m5.large", spot=False)
    day.now = datetime.now(UTC)
    done = big("cost", "gpu", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["dollars"] == pytest.approx(26 * 0.096, abs=0.01)
    assert found["per_hour"] == 0.096
    assert any("master" in note for note in found["notes"])  # has no host key: not connected


def test_a_price_without_a_permission_is_named(big: Run, day: Day, front: Front) -> None:
    day.launch("master", "m5.large", spot=False)
    front.denied = {"GetProducts"}
    done = big("cost", "gpu")
    assert done.returncode == 0, done.stderr
    assert "No price is known of m5.large" in done.stdout
    assert "GetProducts" in done.stdout


def test_an_unknown_cluster_is_an_error(big: Run, day: Day) -> None:
    done = big("cost", "gpu")
    assert done.returncode == 1
    assert "'gpu'" in done.stderr
    assert big("cost", "../x").returncode == 2


def test_a_node_whose_end_nobody_saw_costs_up_to_the_next_look(
    day: Day, look: Callable[[], Any]
) -> None:
    day.launch("master", "m5.large", spot=False)
    node = day.launch("node001", "m5.large", spot=False)
    look()
    day.wait(2)
    look()
    day.wait(1)
    day.end(node)
    day.wait(3)  # AWS no longer lists it
    found = look()
    bill = statement(found.bill, day.now)
    assert bill.nodes[1].state == "ended?"
    assert bill.nodes[1].dollars == pytest.approx(2 * 0.096)
    assert bill.nodes[1].at_most == pytest.approx(6 * 0.096)
    assert "node001" in doubts(bill, found.bill, found.instances)[0]


def test_runs_before_the_first_record_are_said_to_be_missing(
    day: Day, look: Callable[[], Any]
) -> None:
    master = day.launch("master", "m5.large", spot=False)
    day.wait(2)
    day.stop(master)
    day.wait(2)
    day.start(master)
    found = look()
    bill = statement(found.bill, day.now + timedelta(hours=1))
    assert bill.dollars == pytest.approx(0.096)
    assert "master" in doubts(bill, found.bill, found.instances)[0]


def test_a_new_cluster_of_the_same_name_has_its_own_bill(day: Day, look: Callable[[], Any]) -> None:
    old = [
        day.launch("master", "m5.large", spot=False),
        day.launch("node001", "m5.large", spot=False),
    ]
    day.wait(1)
    for machine in old:
        day.end(machine)
    day.wait(0.2)  # AWS still lists them
    day.launch("node001", "m5.large", spot=False)  # before its master
    day.wait(0.01)
    day.launch("master", "m5.large", spot=False)
    day.wait(0.5)
    found = look()
    assert len(found.bill.runs) == 2
    assert statement(found.bill, day.now).dollars == pytest.approx((0.01 + 2 * 0.5) * 0.096)
    assert len(BillStore("us-east-1", "gpu").load()) == 2


def test_two_records_know_together_what_each_has_seen(day: Day, look: Callable[[], Any]) -> None:
    node = day.launch("master", "m5.large", spot=False)
    first = look().bill
    day.wait(1)
    day.end(node)
    last = look().bill
    for both in (merged(first, last), merged(last, first), merged(last, last)):
        assert both.runs == last.runs
        assert both.prices == last.prices
    (run,) = first.runs
    early = replace(first, runs=(replace(run, gone=run.seen + timedelta(minutes=1)),))
    late = replace(first, runs=(replace(run, seen=run.seen + timedelta(minutes=9)),))
    assert merged(early, late).runs == merged(late, early).runs == late.runs


def test_a_record_can_only_be_read_by_its_user_and_a_damaged_one_is_named(
    day: Day, look: Callable[[], Any], bills: Path
) -> None:
    day.launch("master", "m5.large", spot=False)
    look()
    (path,) = bills.rglob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not list(bills.rglob("*.new"))
    path.write_text("{")
    with pytest.raises(ClusterError, match=str(path)):
        look()


class ThisMachine:
    """Runs programs here instead of on a master."""

    def run(self, argv: Sequence[str], *, stdin: str = "") -> Any:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
        return SimpleNamespace(status=done.returncode, stdout=done.stdout)

    def checked(self, argv: Sequence[str], *, stdin: str = "") -> str:
        answer = self.run(argv, stdin=stdin)
        assert answer.status == 0
        return str(answer.stdout)


def test_the_master_keeps_the_record_for_other_machines(
    day: Day,
    front: Front,
    client_to: Callable[[str, str], Ec2],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "new/bill.json"
    monkeypatch.setattr(published, "PATH", str(path))
    ec2, ssh = client_to(front.address, "us-east-1"), ThisMachine()
    stores = [BillStore("us-east-1", "gpu", tmp_path / name) for name in ("here", "there")]

    def seen(store: BillStore) -> Any:
        given: Any = ssh
        return record(ec2, "gpu", ssh=given, store=store, now=day.now)

    day.launch("master", "m5.large", spot=False)
    node = day.launch("node001", "g5.xlarge", spot=True)
    seen(stores[0])
    day.wait(2)
    day.end(node)
    seen(stores[0])
    day.wait(5)
    there = seen(stores[1])  # has never seen the node
    assert [run.alias for run in there.bill.runs] == ["master", "node001"]
    assert read_bill(path) == there.bill
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.parent.stat().st_mode & 0o777 == 0o755
    odd = path.read_text().replace(there.bill.runs[0].id, "../../i-1")
    path.write_text(odd)
    assert seen(stores[1]).bill.runs == there.bill.runs, "an id becomes the name of a file"
    path.write_text("not a bill")
    assert seen(stores[1]).bill.runs == there.bill.runs
    assert path.read_text() == bill_text(there.bill)


def test_machines_that_write_the_record_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one writes all of its record while ``cat`` of the first waits for its input."""
    path = tmp_path / "s/bill.json"
    monkeypatch.setattr(published, "PATH", str(path))
    script = ["sh", "-c", published._WRITE, str(path)]
    slow = subprocess.Popen(script, stdin=subprocess.PIPE, text=True)
    assert slow.stdin is not None
    slow.stdin.write("slow " * 20_000)  # more than a pipe holds: cat runs
    slow.stdin.flush()
    bill = Bill(cluster="gpu", region="r", updated=datetime(2026, 1, 1, tzinfo=UTC))
    ssh: Any = ThisMachine()
    published.publish(ssh, bill)
    assert read_bill(path) == bill
    slow.stdin.write("end")
    slow.stdin.flush()
    assert read_bill(path) == bill, "the slow one changes the file of the other"
    slow.communicate()
    assert slow.returncode == 0
    assert path.read_text().endswith("end")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("reason", "state", "ended"),
    [
        (
            "User initiated (2026-01-31 10:00:05 GMT)",
            "stopped",
            datetime(2026, 1, 31, 10, 0, 5, tzinfo=UTC),
        ),
        ("User initiated (2026-01-31 10:00:05 GMT)", "running", None),
        ("Client.InstanceInitiatedShutdown", "terminated", None),
        ("", "terminated", None),
    ],
)
def test_the_time_of_an_end_is_read(reason: str, state: str, ended: datetime | None) -> None:
    answer = {"InstanceId": "i-1", "StateTransitionReason": reason, "State": {"Name": state}}
    assert responses.instance(answer).ended == ended
