"""Text for people about trials."""

from __future__ import annotations

from spearmint.model import Trial, TrialState
from spearmint.tables import broken_lines


def test_the_same_output_is_shown_once() -> None:
    trials = [
        Trial(id=i, state=TrialState.BROKEN, params={}, reason=reason, tail=f"in {reason}")
        for i, reason in enumerate(["a", "a", "b", "a"], 1)
    ]
    assert broken_lines(trials) == [
        "trial 1 broke: a",
        "    in a",
        "trial 2 broke: a",
        "trial 3 broke: b",
        "    in b",
        "trial 4 broke: a",
        "    in a",
    ]
