"""Counting and stop rules, without a study, files or a driver."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from spearmint.controller.limits import StudyLimits
from spearmint.controller.tally import Tally
from spearmint.model import Trial, TrialState


def tally_of(*ends: float | str, maximize: bool = False, **limits) -> Tally:
    """Return a tally of trials of 1 s that ended with a value, "pruned" or a failure reason."""
    tally = Tally(limits=StudyLimits(**limits), maximize=maximize)
    for number, end in enumerate(ends, 1):
        tally.add(ended(number, end))
    return tally


def ended(number: int, end: float | str) -> Trial:
    if isinstance(end, float):
        return Trial(id=number, state=TrialState.COMPLETE, params={}, value=end, seconds=1.0)
    if end == "pruned":
        return Trial(id=number, state=TrialState.PRUNED, params={}, seconds=1.0)
    return Trial(id=number, state=TrialState.BROKEN, params={}, reason=end, seconds=1.0)


def best_id(tally: Tally) -> int | None:
    return tally.best.id if tally.best else None


def test_it_counts_trials_by_their_end() -> None:
    tally = tally_of(2.0, "pruned", "typo", 1.0, "typo")
    assert (tally.complete, tally.pruned, tally.broken) == (2, 1, 2)
    assert (tally.finished, tally.ended, tally.seconds) == (3, 5, 5.0)


def test_a_trial_without_a_duration_adds_no_seconds() -> None:
    tally = tally_of(2.0)
    tally.add(Trial(id=2, state=TrialState.COMPLETE, params={}, value=1.0))
    assert tally.seconds == 1.0


@pytest.mark.parametrize(
    ("values", "maximize", "expected"),
    [
        ([3.0, 1.0, 2.0], False, 2),
        ([3.0, 1.0, 2.0], True, 1),
        ([1.0, 1.0], False, 1),
        ([-math.inf, 5.0], False, 2),
        ([math.inf, 5.0], True, 2),
        (["pruned", "typo"], False, None),
    ],
)
def test_the_best_trial(values, maximize: bool, expected: int | None) -> None:
    assert best_id(tally_of(*values, maximize=maximize)) == expected


def test_enough_trials_count_those_that_run() -> None:
    tally = tally_of(1.0, "pruned", "typo", finished=4)
    assert tally.wants_trial(0)
    assert tally.wants_trial(1)
    assert not tally.wants_trial(2)


@pytest.mark.parametrize("maximize", [False, True])
def test_a_target_is_reached_when_a_value_is_as_good(maximize: bool) -> None:
    sign = -1.0 if maximize else 1.0
    assert not tally_of(0.6 * sign, target=0.5 * sign, maximize=maximize).stop_reason()
    reached = tally_of(0.6 * sign, 0.5 * sign, target=0.5 * sign, maximize=maximize)
    assert f"target {0.5 * sign:g}" in reached.stop_reason()
    assert not reached.wants_trial(0)


@pytest.mark.parametrize("maximize", [False, True])
def test_an_infinite_value_reaches_no_target(maximize: bool) -> None:
    for value in (math.inf, -math.inf):
        assert not tally_of(value, target=0.5, maximize=maximize).stop_reason()


def test_patience_counts_finished_trials_since_the_best() -> None:
    assert not tally_of(3.0, 2.0, "pruned", "typo", patience=2).stop_reason()
    stopped = tally_of(3.0, 2.0, "pruned", "typo", 2.0, patience=2)
    assert "2 trials" in stopped.stop_reason()
    stopped.add(ended(6, 1.0))
    assert not stopped.stop_reason()


def test_the_first_trials_that_all_break_fail_the_study() -> None:
    assert not tally_of("typo", "typo", broken=3).is_failing()
    failing = tally_of("typo", "typo", "typo", broken=3)
    assert failing.is_failing()
    assert not failing.wants_trial(0)


@pytest.mark.parametrize("success", [1.0, "pruned"])
def test_after_a_success_ten_times_as_many_fail_the_study(success: float | str) -> None:
    assert not tally_of(success, *["typo"] * 29, broken=3).is_failing()
    assert tally_of(success, *["typo"] * 30, broken=3).is_failing()
    assert not tally_of(*["typo"] * 29, success, "typo", broken=3).is_failing()


def test_forgotten_failures_no_longer_fail_it_and_stay_counted() -> None:
    tally = tally_of("typo", "typo", broken=2)
    tally.forget_failures()
    assert not tally.is_failing()
    assert tally.failure("", Path) is None
    assert tally.broken == 2


def test_the_failure_names_the_last_trial_and_its_output() -> None:
    tally = tally_of("typo", "no disk", broken=2)
    failure = tally.failure("us", lambda trial_id: Path(f"{trial_id}.out"))
    assert failure is not None
    assert re.fullmatch(r"us: .*\bfirst 2 trials\b.*\btrial 2: no disk", failure.what)
    assert "2.out\n" in failure.fix
    later = tally_of(1.0, *["typo"] * 20, broken=2).failure("", lambda _: Path("x"))
    assert later is not None
    assert "last 20 trials" in later.what
    assert tally_of(1.0).failure("", Path) is None


def test_trials_without_gpu_memory_fail_the_study_only_in_large_numbers() -> None:
    tally = tally_of("typo", broken=2)
    for number in range(2, 20):
        assert not tally.is_failing()
        tally.add(replace(ended(number, "out of GPU memory"), out_of_memory=True))
    assert not tally.is_failing()
    tally.add(replace(ended(20, "out of GPU memory"), out_of_memory=True))
    assert tally.is_failing()
