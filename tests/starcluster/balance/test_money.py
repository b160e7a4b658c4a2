"""The cost of a cluster between checks, its budget, and how long it is idle."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.aws.model import Instance
from starcluster.balance.decision.decide import Costs, Limits, QueueSnapshot, decide
from starcluster.balance.decision.limits import check_limits
from starcluster.balance.journal.money import Entry, idle_since, spent
from starcluster.config.parsers import NodeType
from starcluster.errors import InputError
from starcluster.model import TAG_ALIAS
from tests.starcluster.balance.queue_states import STATES

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PRICES = {"a.large": 2.0, "b.large": 10.0}
ENTRY = Entry(
    time=NOW,
    nodes=1,
    running_jobs=0,
    waiting_jobs=0,
    action="none",
    why="",
    dollars_per_hour=4.0,
    spent=7.0,
)


def hours(number: float) -> datetime:
    return NOW + timedelta(hours=number)


def node(launched: float, kind: str = "a.large", state: str = "running") -> Instance:
    return Instance(
        id=f"i-{launched}", state=state, type=kind, image_id="", zone="z", launched=hours(launched)
    )


def test_the_first_check_counts_all_nodes_since_their_launch() -> None:
    nodes = [node(-3), node(-1, "b.large"), node(-9, state="stopped"), node(-2, "unknown.large")]
    assert spent(None, nodes, PRICES, NOW) == pytest.approx(3 * 2 + 1 * 10)


def test_a_node_that_ended_between_two_checks_is_counted() -> None:
    before = replace(ENTRY, time=hours(-0.1))
    assert spent(before, [], PRICES, NOW) == pytest.approx(7.0 + 0.4)
    new = [node(-5), node(-0.05, "b.large")]
    assert spent(before, new, PRICES, NOW) == pytest.approx(7.0 + 0.4 + 0.5)


def test_after_a_pause_of_the_balancer_the_current_nodes_are_counted_since_then() -> None:
    before = replace(ENTRY, time=hours(-10))
    assert spent(before, [node(-20), node(-1)], PRICES, NOW) == pytest.approx(7.0 + 20 + 2)
    slow = replace(before, interval_s=5 * 3600.0)
    assert spent(slow, [node(-20)], PRICES, NOW) == pytest.approx(7.0 + 40)


def test_idle_time_begins_anew_after_jobs_a_pause_and_a_start() -> None:
    early = hours(-9)

    def since(before: Entry | None, *, left: bool = False, started: datetime = early) -> Any:
        return idle_since(before, jobs_left=left, started=started, now=NOW)

    idle = replace(ENTRY, time=hours(-0.1), idle_since=hours(-2))
    assert since(idle) == hours(-2)
    assert since(idle, left=True) is None
    assert since(idle, started=hours(-1)) == hours(-1)
    assert since(replace(idle, time=hours(-1))) == NOW  # jobs can have run in the meantime
    assert since(replace(idle, idle_since=None)) == NOW
    assert since(None) == NOW


BUDGET = Limits(max_nodes=8, add_nodes_per_iter=8, budget=50.0, reserve_s=180.0)


@pytest.mark.parametrize(
    ("total", "add", "stop"),
    [
        (0.0, 4, False),
        (38.9, 4, False),
        (41.0, 3, False),
        (46.0, 1, False),
        (48.0, 0, False),
        (49.89, 0, False),
        (49.91, 0, True),
        (51.0, 0, True),
    ],
)
def test_the_budget_pays_for_an_hour_of_each_new_node(total: float, add: int, stop: bool) -> None:
    costs = Costs(spent=total, per_hour=2.0, new_node=2.0)
    snapshot = replace(STATES[0].snapshot(), costs=costs)  # four nodes would start jobs
    decision = decide(snapshot, BUDGET)
    assert (decision.add, decision.stop) == (add, stop)
    if add < 4:
        assert "budget" in decision.why
        assert f"${total:.2f}" in decision.why or f"${50 - total:.2f}" in decision.why


def test_the_budget_comes_before_the_minimum_size_and_interrupted_nodes() -> None:
    spent_all = Costs(spent=50.0, per_hour=2.0, new_node=2.0)
    few = QueueSnapshot(costs=spent_all, age_s={"node001": 1.0}, interrupted=frozenset({"node001"}))
    assert decide(few, replace(BUDGET, min_nodes=4)).stop
    nearly = QueueSnapshot(costs=replace(spent_all, spent=45.0))
    assert decide(nearly, replace(BUDGET, min_nodes=4)).add == 1


def test_an_idle_cluster_stops_but_not_with_jobs_left() -> None:
    limits = Limits(max_nodes=8, idle_stop_s=600.0)
    idle = QueueSnapshot(idle_s=600.0)
    assert decide(idle, limits).stop
    assert not decide(replace(idle, idle_s=599.0), limits).stop
    assert not decide(idle, replace(limits, idle_stop_s=None)).stop
    for state in STATES:
        if state.jobs or state.running:
            assert not decide(replace(state.snapshot(), idle_s=600.0), limits).stop, state.queue


def test_limits_that_cannot_be_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    master = replace(node(0), is_spot=True, tags={TAG_ALIAS: "master"})
    template = SimpleNamespace(
        node_instance_type=(NodeType(instance_type="a.large"),),
        fallback_instance_types=("b.large",),
    )
    cluster: Any = SimpleNamespace(name="gpu", ec2=None, instances=(master,), template=template)
    monkeypatch.setattr(
        "starcluster.balance.decision.limits.prices.on_demand", lambda ec2, types: PRICES
    )
    check_limits(BUDGET, cluster)
    monkeypatch.setattr(
        "starcluster.balance.decision.limits.prices.on_demand", lambda ec2, types: {}
    )
    with pytest.raises(InputError, match=r"\$50\.00.* a\.large, b\.large") as caught:
        check_limits(BUDGET, cluster)
    assert "pricing:GetProducts" in caught.value.fix
    with pytest.raises(InputError, match="'gpu'") as caught:
        check_limits(Limits(max_nodes=1, idle_stop_s=60.0), cluster)
    assert "--kill-cluster" in caught.value.fix
