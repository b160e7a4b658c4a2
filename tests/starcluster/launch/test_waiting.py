"""Wait for instances, whatever AWS answers in the first seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from starcluster.aws.model import Instance
from starcluster.errors import NotFound
from starcluster.launch import wait as waiting
from starcluster.launch.wait import wait_for


def instance(id: str, state: str) -> Instance:
    return Instance(id=id, state=state, type="t3.micro", image_id="ami-1", zone="us-east-1a")


class Late:
    """Returns the answers in turn and then repeats the last one.

    An answer has the state of each instance; None means that AWS does not know them.
    """

    def __init__(self, *answers: dict[str, str] | None) -> None:
        self.answers = list(answers)

    def instances(self, ids: Sequence[str]) -> list[Instance]:
        states = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if states is None:
            raise NotFound("no such instance", code="InvalidInstanceID.NotFound")
        return [instance(id, state) for id, state in states.items()]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_POLL_S", 0.0)


@pytest.mark.parametrize(
    "first",
    [None, {"i-1": "running"}, {"i-1": "stopped", "i-2": "stopped"}, {"i-1": "stopping"}],
)
def test_an_answer_that_lags_behind_the_launch_or_start_is_no_failure(
    first: dict[str, str] | None,
) -> None:
    ec2: Any = Late(first, first, {"i-1": "running", "i-2": "pending"},
                    {"i-1": "running", "i-2": "running"})  # fmt: skip
    found = wait_for(ec2, ["i-1", "i-2"], "running", 600)
    assert [(instance.id, instance.state) for instance in found] == [
        ("i-1", "running"),
        ("i-2", "running"),
    ]


def test_what_stays_unknown_or_stopped_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LAG_S", 0.0)
    unknown: Any = Late(None)
    with pytest.raises(NotFound):
        wait_for(unknown, ["i-1"], "running", 600)
    stopped: Any = Late({"i-1": "stopped"})
    assert [instance.state for instance in wait_for(stopped, ["i-1"], "running", 600)] == [
        "stopped"
    ]


@pytest.mark.parametrize("state", ["terminated", "shutting-down"])
def test_what_ended_is_not_waited_for(state: str) -> None:
    ec2: Any = Late({"i-1": state})
    assert [instance.state for instance in wait_for(ec2, ["i-1"], "running", 600)] == [state]
