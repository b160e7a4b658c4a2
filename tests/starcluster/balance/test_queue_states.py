"""The table of decisions in the docs, line by line."""

from __future__ import annotations

import pytest

from starcluster.balance.decision.decide import decide
from tests.starcluster.balance.queue_states import STATES, TABLE, State, table


@pytest.mark.parametrize("state", STATES, ids=[state.queue for state in STATES])
def test_each_state_of_the_table_has_its_decision_and_reason(state: State) -> None:
    assert decide(state.snapshot(), state.all_limits()) == state.expected


def test_the_table_of_the_docs_is_made_of_these_states() -> None:
    assert len({state.queue for state in STATES}) == len(STATES) >= 20
    assert TABLE.read_text() == table(), "run python -m tests.starcluster.balance.queue_states"
