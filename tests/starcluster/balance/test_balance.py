"""The conditions for a cluster to grow and shrink."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starcluster.balance import loop as balancer
from starcluster.balance.cell.model import Cell, Job, JobState, NewNode
from starcluster.balance.cell.placement import simulate
from starcluster.balance.decision.decide import Decision, Limits, QueueSnapshot, decide
from starcluster.balance.loop import Balancer
from starcluster.errors import CredentialsError, SshError
from tests.starcluster.balance.queue_states import ATTRIBUTES, ENVIRONMENTS, job, place

LIMITS = Limits(max_nodes=5)
NODES = {"node001": 7200.0, "node002": 3600.0}
BARE = QueueSnapshot(
    new_node=NewNode(kind="c5.xlarge", places=(place(""),)),
    new_names=tuple(f"node{number:03d}" for number in range(3, 200)),
    age_s=NODES,
)
WAITING = replace(BARE, jobs=(job(1, tasks=9),))


def test_jobs_that_wait_long_let_it_grow_up_to_the_limits() -> None:
    assert decide(WAITING, LIMITS).add == 1
    assert decide(WAITING, replace(LIMITS, add_nodes_per_iter=9)).add == 2  # 5 in all
    assert decide(WAITING, replace(LIMITS, add_nodes_per_iter=9, max_nodes=99)).add == 3
    assert decide(WAITING, replace(LIMITS, max_nodes=3)).add == 0
    assert decide(replace(BARE, jobs=(job(1, waited_s=800.0),)), LIMITS).add == 0


def test_after_a_change_it_waits_for_that_to_show() -> None:
    snapshot = replace(WAITING, since_change_s=100.0)
    decision = decide(snapshot, LIMITS)
    assert decision == Decision(why=decision.why)
    assert decide(replace(snapshot, since_change_s=999.0), LIMITS).add == 1


def test_idle_nodes_go_the_oldest_first_but_never_one_with_a_job() -> None:
    snapshot = BARE
    assert decide(snapshot, LIMITS).remove == ("node001", "node002")
    assert decide(snapshot, replace(LIMITS, min_nodes=2)).remove == ("node001",)
    assert decide(replace(snapshot, busy=frozenset({"node001"})), LIMITS).remove == ("node002",)
    assert decide(replace(snapshot, jobs=(job(1, waited_s=1.0),)), LIMITS).remove == ()
    assert decide(replace(snapshot, age_s={"node001": 60.0}), LIMITS).remove == ()


def test_a_cluster_below_its_least_size_grows_at_once() -> None:
    assert decide(QueueSnapshot(), replace(LIMITS, min_nodes=3)).add == 2


def test_the_cluster_ends_only_when_nothing_is_left_and_that_is_wished() -> None:
    ending = replace(LIMITS, kill_cluster=True)
    assert decide(QueueSnapshot(), ending).terminate
    assert not decide(QueueSnapshot(), LIMITS).terminate
    assert not decide(QueueSnapshot(running_jobs=1), ending).terminate
    for state in JobState:
        assert not decide(QueueSnapshot(jobs=(job(1, state=state),)), ending).terminate
    assert decide(QueueSnapshot(age_s=NODES), ending).remove  # the nodes first
    assert not decide(QueueSnapshot(age_s={"node001": 60.0}), ending).terminate


def test_spot_nodes_that_aws_takes_are_drained_before_all_else() -> None:
    snapshot = QueueSnapshot(
        age_s=NODES,
        busy=frozenset(NODES),
        interrupted=frozenset({"node002", "gone"}),
        since_change_s=1.0,
    )
    assert decide(snapshot, LIMITS).drain == ("node002",)


names = [f"node{number:03d}" for number in range(8)]
requests = st.dictionaries(
    st.sampled_from(["gpu", "ram", "mem_free", "licence", "unknown"]),
    st.sampled_from(["0", "1", "2", "6G", "900G"]),
)
jobs = st.builds(
    Job,
    id=st.sampled_from("123"),
    state=st.sampled_from(JobState),
    waited_s=st.floats(0, 1e5),
    tasks=st.integers(1, 30),
    startable=st.none() | st.integers(0, 5),
    pe=st.sampled_from(["", *ENVIRONMENTS, "*", "absent"]),
    slots=st.integers(1, 20),
    requests=requests,
    queues=st.sampled_from([(), ("all.q",), ("*@node00[1-3]",), ("big.q",)]),
)


@given(
    waiting=st.lists(jobs, max_size=8),
    busy=st.frozensets(st.sampled_from(names)),
    ages=st.dictionaries(st.sampled_from(names), st.floats(0, 1e5)),
    running=st.integers(0, 9),
    since=st.floats(0, 1e4),
    least=st.integers(1, 4),
    more=st.integers(0, 6),
    kill=st.booleans(),
)
def test_no_decision_leaves_the_limits_or_ends_a_job(
    waiting: list[Job],
    busy: frozenset[str],
    ages: dict[str, float],
    running: int,
    since: float,
    least: int,
    more: int,
    kill: bool,
) -> None:
    places = tuple(place(name, slots=2, busy=name in busy) for name in ages)
    snapshot = replace(
        BARE,
        jobs=tuple(waiting),
        cell=Cell(places=places, attributes=ATTRIBUTES, environments=ENVIRONMENTS),
        running_jobs=running,
        age_s=ages,
        busy=busy,
        since_change_s=since,
    )
    limits = Limits(min_nodes=least, max_nodes=least + more, add_nodes_per_iter=3)
    limits = replace(limits, kill_cluster=kill)
    decision = decide(snapshot, limits)
    size = 1 + len(ages)
    assert not set(decision.remove) & busy
    assert not (decision.add and decision.remove)
    assert decision.add == 0 or size + decision.add <= max(limits.max_nodes, least)
    assert not decision.remove or size - len(decision.remove) >= least
    assert not decision.terminate or not (waiting or running)


@given(jobs, st.integers(0, 6))
def test_new_nodes_start_as_many_jobs_as_promised(waiting: Job, room: int) -> None:
    node = NewNode(kind="g4dn.xlarge", places=(place(""),))
    fresh = [f"new{number}" for number in range(room)]
    cell = Cell(places=(place("a"),), attributes=ATTRIBUTES, environments=ENVIRONMENTS)
    forecast = simulate(cell, [waiting], node, fresh)
    assert forecast.nodes <= room
    grown = replace(cell, places=(*cell.places, *map(place, fresh[: forecast.nodes])))
    promised = forecast.starting + sum(each.tasks for each in forecast.growing)
    assert simulate(grown, [waiting], node, ()).starting == promised


class OneSpotNode:
    """A cluster with a spot node."""

    def __init__(self) -> None:
        self.nodes = [self]

    def is_spot(self) -> bool:
        return True

    def is_master(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("taken_after", "slept"), [(2, [5.0, 5.0]), (99, [5.0] * 12)])
def test_a_notice_of_aws_cuts_the_wait_short(
    monkeypatch: pytest.MonkeyPatch, taken_after: int, slept: list[float]
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(
        balancer, "interrupted", lambda cluster: ["node001"] * (len(pauses) >= taken_after)
    )
    nobody: Any = None
    cluster: Any = OneSpotNode()
    Balancer(nobody, LIMITS, interval_s=60.0, sleep=pauses.append)._pause(cluster)
    assert pauses == slept


def test_credentials_that_are_over_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = CredentialsError("the AWS login has expired", "Log in: aws sso login")
    answers: list[Any] = [ended, SshError("master: gone"), OneSpotNode()]

    def found(*_: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(balancer, "find", found)
    monkeypatch.setattr(Balancer, "run_once", lambda self, cluster: True)
    said: list[str] = []
    pauses: list[float] = []
    opened: list[str] = []
    ec2 = SimpleNamespace(open_again=lambda: opened.append("again"))
    lifecycle: Any = SimpleNamespace(ec2=ec2, config=None, name="gpu")
    Balancer(lifecycle, LIMITS, say=said.append, sleep=pauses.append).run()
    assert said[0].endswith(f": {ended}")
    assert said[1].endswith(": master: gone")
    assert len(said) == 2
    assert (pauses, opened) == ([60.0, 60.0], ["again"])
