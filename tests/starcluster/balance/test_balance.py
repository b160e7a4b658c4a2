"""The conditions for a cluster to grow and shrink."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starcluster.balance import loop as balancer
from starcluster.balance.decide import Decision, Limits, QueueSnapshot, decide
from starcluster.balance.loop import Balancer, read_queue
from starcluster.errors import CredentialsError, SshError

LIMITS = Limits(max_nodes=5)
NODES = {"node001": 7200.0, "node002": 3600.0}


def test_jobs_that_wait_long_let_it_grow_up_to_the_limits() -> None:
    snapshot = QueueSnapshot(waiting_s=(1000.0,) * 9, slots_per_node=4, age_s=NODES)
    assert decide(snapshot, LIMITS).add == 1
    assert decide(snapshot, replace(LIMITS, add_nodes_per_iter=9)).add == 2  # 5 in all
    assert decide(snapshot, replace(LIMITS, add_nodes_per_iter=9, max_nodes=99)).add == 3
    assert decide(snapshot, replace(LIMITS, max_nodes=3)).add == 0
    assert decide(replace(snapshot, waiting_s=(800.0,)), LIMITS) == Decision()
    assert decide(replace(snapshot, free_slots=1), LIMITS).add == 0


def test_after_a_change_it_waits_for_that_to_show() -> None:
    snapshot = QueueSnapshot(waiting_s=(1000.0,), age_s=NODES, since_change_s=100.0)
    decision = decide(snapshot, LIMITS)
    assert decision == Decision(why=decision.why)
    assert decide(replace(snapshot, since_change_s=999.0), LIMITS).add == 1


def test_idle_nodes_go_the_oldest_first_but_never_one_with_a_job() -> None:
    snapshot = QueueSnapshot(age_s=NODES, free_slots=8)
    assert decide(snapshot, LIMITS).remove == ("node001", "node002")
    assert decide(snapshot, replace(LIMITS, min_nodes=2)).remove == ("node001",)
    assert decide(replace(snapshot, busy=frozenset({"node001"})), LIMITS).remove == ("node002",)
    assert decide(replace(snapshot, waiting_s=(1.0,)), LIMITS).remove == ()
    assert decide(replace(snapshot, age_s={"node001": 60.0}), LIMITS).remove == ()


def test_a_cluster_below_its_least_size_grows_at_once() -> None:
    assert decide(QueueSnapshot(), replace(LIMITS, min_nodes=3)).add == 2


def test_the_cluster_ends_only_when_nothing_is_left_and_that_is_wished() -> None:
    ending = replace(LIMITS, kill_cluster=True)
    assert decide(QueueSnapshot(), ending).terminate
    assert not decide(QueueSnapshot(), LIMITS).terminate
    assert not decide(QueueSnapshot(running_jobs=1), ending).terminate
    assert not decide(QueueSnapshot(waiting_s=(1.0,)), ending).terminate
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


ages = st.dictionaries(st.sampled_from([f"node{n:03d}" for n in range(8)]), st.floats(0, 1e5))


@given(
    snapshot=st.builds(
        QueueSnapshot,
        waiting_s=st.lists(st.floats(0, 1e5), max_size=20).map(tuple),
        slots_per_node=st.integers(1, 8),
        free_slots=st.integers(0, 9),
        running_jobs=st.integers(0, 9),
        age_s=ages,
        busy=st.frozensets(st.sampled_from([f"node{n:03d}" for n in range(8)])),
        since_change_s=st.floats(0, 1e4),
    ),
    least=st.integers(1, 4),
    more=st.integers(0, 6),
    kill=st.booleans(),
)
def test_no_decision_leaves_the_limits_or_ends_a_job(
    snapshot: QueueSnapshot, least: int, more: int, kill: bool
) -> None:
    limits = Limits(min_nodes=least, max_nodes=least + more, add_nodes_per_iter=3)
    limits = replace(limits, kill_cluster=kill)
    decision = decide(snapshot, limits)
    size = 1 + len(snapshot.age_s)
    assert not set(decision.remove) & snapshot.busy
    assert not (decision.add and decision.remove)
    assert decision.add == 0 or size + decision.add <= max(limits.max_nodes, least)
    assert not decision.remove or size - len(decision.remove) >= least
    assert not decision.terminate or not (snapshot.waiting_s or snapshot.running_jobs)


# Output of Grid Engine 8.1.9, shortened.
QSTAT = """<?xml version='1.0'?>
<job_info>
  <queue_info>
    <Queue-List>
      <name>all.q@master</name><qtype>BIP</qtype>
      <slots_used>1</slots_used><slots_resv>0</slots_resv><slots_total>4</slots_total>
      <job_list state="running"><JB_job_number>1</JB_job_number><state>r</state></job_list>
    </Queue-List>
    <Queue-List>
      <name>all.q@node001</name>
      <slots_used>0</slots_used><slots_resv>0</slots_resv><slots_total>4</slots_total>
      <state>d</state>
    </Queue-List>
  </queue_info>
  <job_info>
    <job_list state="pending">
      <JB_job_number>2</JB_job_number><state>qw</state>
      <JB_submission_time>2026-01-01T10:00:00</JB_submission_time><tasks>2-9:2,11</tasks>
    </job_list>
    <job_list state="pending">
      <JB_job_number>3</JB_job_number><state>hqw</state>
      <JB_submission_time>2026-01-01T10:00:00</JB_submission_time>
    </job_list>
  </job_info>
</job_info>
"""


def test_what_qstat_tells_is_read_and_a_held_job_does_not_wait() -> None:
    snapshot = read_queue(QSTAT, datetime(2026, 1, 1, 10, 1))
    assert snapshot.waiting_s == (60.0,) * 5
    assert snapshot.free_slots == 3  # a disabled queue does not count
    assert (snapshot.slots_per_node, snapshot.running_jobs, snapshot.busy) == (
        4,
        1,
        frozenset({"master"}),
    )


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
