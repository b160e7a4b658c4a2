"""The budget is kept while the master does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.balance import loop
from starcluster.balance.decision.decide import Costs, Limits
from starcluster.balance.loop import Balancer
from starcluster.balance.observation.setups import Setups
from starcluster.errors import AwsError, SshError
from starcluster.model import TAG_ALIAS


class Lifecycle:
    """Records how the cluster ended; the first stop fails."""

    ec2 = config = None
    name = "gpu"

    def __init__(self) -> None:
        self.ended: list[str] = []

    def stop(self, *, terminate_unstoppable: bool) -> None:
        assert terminate_unstoppable
        self.ended.append("stop")
        if len(self.ended) == 1:
            raise AwsError("AWS does not answer", "")

    def terminate(self) -> None:
        self.ended.append("terminate")


@pytest.mark.parametrize(
    ("spot_master", "calls", "end"),
    [(False, ["stop", "stop"], "stopped"), (True, ["terminate"], "terminated")],
)
def test_a_spent_budget_ends_the_cluster_although_its_queue_is_unknown(
    monkeypatch: pytest.MonkeyPatch, spot_master: bool, calls: list[str], end: str
) -> None:
    master = SimpleNamespace(alias="master", is_spot=spot_master, tags={TAG_ALIAS: "master"})
    cluster = SimpleNamespace(instances=[master], name="gpu", nodes=[], close=lambda: None)
    monkeypatch.setattr(loop, "find", lambda *_: cluster)

    def unreachable(self: Balancer, cluster: Any) -> str:
        raise SshError("master: no answer")

    monkeypatch.setattr(Balancer, "run_once", unreachable)
    monkeypatch.setattr(Setups, "running", lambda *_: None)
    spent = iter([9.0, 9.5, 9.99, 10.03])
    lifecycle: Any = Lifecycle()
    said: list[str] = []
    limits = Limits(max_nodes=2, budget=10.0, reserve_s=180.0)
    balancer = Balancer(lifecycle, limits, say=said.append, sleep=lambda s: None)
    monkeypatch.setattr(
        balancer._observer, "costs", lambda cluster: Costs(spent=next(spent), per_hour=1.0)
    )
    assert balancer.run() == end
    assert lifecycle.ended == calls
    assert sum("master: no answer" in text for text in said) == 3 + (not spot_master)


def test_without_a_budget_an_unreachable_master_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = SimpleNamespace(instances=[], nodes=[], close=lambda: None)
    monkeypatch.setattr(loop, "find", lambda *_: cluster)
    answers = [SshError("master: no answer")] * 3

    def unreachable(self: Balancer, cluster: Any) -> str:
        if answers:
            raise answers.pop()
        return "terminated"

    monkeypatch.setattr(Balancer, "run_once", unreachable)
    lifecycle: Any = Lifecycle()
    assert Balancer(lifecycle, Limits(max_nodes=2), sleep=lambda s: None).run() == "terminated"
    assert lifecycle.ended == []
