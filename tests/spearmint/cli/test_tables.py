"""Text about trials on a terminal."""

from __future__ import annotations

from spearmint.model import Trial, TrialState
from spearmint.view.tables import broken_lines


def test_what_a_trial_prints_does_not_drive_the_terminal() -> None:
    trial = Trial(
        id=1,
        state=TrialState.BROKEN,
        params={},
        reason="\x1b[31mno luck\x1b[0m",
        tail="\x1b[2J\x1b[1;1Hstep 1\r\x1b]0;title\x07step 2\n\x00\x9b7m\ufffd",
    )
    assert broken_lines([trial]) == [
        "trial 1 failed: no luck",
        "    step 1",
        "    ·]0;title·step 2",
        "    ··7m\ufffd",
    ]


def test_the_same_output_is_shown_once() -> None:
    trials = [
        Trial(id=i, state=TrialState.BROKEN, params={}, reason=reason, tail=f"in {reason}")
        for i, reason in enumerate(["a", "a", "b", "a"], 1)
    ]
    assert broken_lines(trials) == [
        "trial 1 failed: a",
        "    in a",
        "trial 2 failed: a",
        "trial 3 failed: b",
        "    in b",
        "trial 4 failed: a",
        "    in a",
    ]
