from __future__ import annotations

import pytest

import spearmint
from spearmint.trial.environment import STEPS_UNTIL


def test_outside_of_a_search_with_rungs_all_steps_are_trained(monkeypatch) -> None:
    monkeypatch.delenv(STEPS_UNTIL, raising=False)
    assert list(spearmint.steps(3)) == [1, 2, 3]
    assert list(spearmint.steps(3, after=2)) == [3]
    assert list(spearmint.steps(3, after=3)) == []


@pytest.mark.parametrize(("until", "trained"), [("4", [3, 4]), ("2", []), ("99", [3, 4, 5])])
def test_a_part_ends_at_its_rung(monkeypatch, until: str, trained: list[int]) -> None:
    monkeypatch.setenv(STEPS_UNTIL, until)
    assert list(spearmint.steps(5, after=2)) == trained
