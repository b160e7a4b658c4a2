"""Rungs, and which paused trial continues."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from spearmint.fidelity import Climber, Fidelity, next_to_resume, rungs_in, rungs_text


@pytest.mark.parametrize(
    ("low", "high", "reduction", "rungs"),
    [
        (1, 81, 3, (1, 3, 9, 27, 81)),
        (1, 100, 3, (1, 4, 11, 33, 100)),
        (5, 100, 4, (6, 25, 100)),
        (3, 3, 2, (3,)),
        (1, 2, 3, (1, 2)),
        (1, 1, 2, (1,)),
    ],
)
def test_rungs_go_down_from_a_full_training(low, high, reduction, rungs) -> None:
    fidelity = Fidelity(low=low, high=high, reduction=reduction)
    assert fidelity.rungs == rungs
    assert [fidelity.steps(done) for done in range(len(rungs))] == [
        *zip((0, *rungs), rungs, strict=False)
    ]
    assert [fidelity.is_last(done) for done in range(len(rungs))][-1]


def paused(*losses: float) -> Climber:
    return Climber(losses, is_paused=True)


def test_the_best_third_of_a_rung_continues_and_the_highest_rung_first() -> None:
    trials = {1: paused(3.0), 2: paused(1.0)}
    assert next_to_resume(trials, 3) is None, "a third of two is none"
    trials[3] = paused(2.0)
    assert next_to_resume(trials, 3) == 2
    trials[2] = Climber((1.0,), is_paused=False)
    assert next_to_resume(trials, 3) is None, "the best one continues already"
    trials |= {4: paused(0.5, 9.0), 5: paused(0.6, 8.0), 6: paused(0.7, 7.0)}
    assert next_to_resume(trials, 3) == 6, "the highest rung first, by its own values"


def test_a_loss_that_is_not_finite_never_continues() -> None:
    trials = {i: paused(value) for i, value in enumerate((math.inf, math.inf, math.nan, math.inf))}
    assert next_to_resume(trials, 2) is None


def test_an_unknown_loss_does_not_count_at_its_rung() -> None:
    trials = {1: paused(1.0), 2: paused(2.0), 3: Climber((math.nan, 0.5), is_paused=False)}
    assert next_to_resume(trials, 3) is None, "two trials are known at the first rung"
    assert next_to_resume({**trials, 3: Climber((0.25, 0.5), is_paused=False)}, 3) is None
    assert next_to_resume({**trials, 3: Climber((9.0, 0.5), is_paused=False)}, 3) == 1


def test_the_values_at_rungs_of_a_curve() -> None:
    fidelity = Fidelity(high=27, reduction=3)
    assert fidelity.at_rungs({1: 0.5, 2: 0.25, 3: 0.125}) == (0.5, 0.125)
    assert fidelity.at_rungs({9: 0.5})[2] == 0.5
    assert all(map(math.isnan, fidelity.at_rungs({9: 0.5})[:2]))
    assert fidelity.at_rungs({}) == fidelity.at_rungs({27: 1.0})[:0] == ()
    thinned = Fidelity(high=3000, low=1000, reduction=3)
    assert thinned.at_rungs({995: 0.5, 1010: 0.25}) == (0.5,)
    assert thinned.at_rungs({895: 0.5}) == ()


def test_rungs_are_read_from_their_description() -> None:
    fidelity = Fidelity(name="deep epochs", high=27)
    assert rungs_in(fidelity.describe()) == fidelity.rungs
    assert rungs_in("") == rungs_in("rungs") == ()


def test_equal_losses_continue_in_order() -> None:
    assert next_to_resume({n: paused(1.0) for n in (5, 3, 9)}, 3) == 3


def test_a_search_ends_with_about_a_third_of_each_rung_on_the_next() -> None:
    dice, trials, rungs = random.Random(1), {}, 4
    for number in range(900):
        trials[number] = paused(dice.random())
        while (chosen := next_to_resume(trials, 3)) is not None:
            losses = (*trials[chosen].losses, dice.random())
            trials[chosen] = Climber(losses, is_paused=len(losses) < rungs)
    reached = [sum(len(t.losses) > rung for t in trials.values()) for rung in range(rungs)]
    assert reached[0] == 900
    assert all(b >= a // 3 for a, b in itertools.pairwise(reached))
    assert reached[-1] < 900 / 9, "few train to the end"


def test_the_text_counts_the_trials_of_each_rung() -> None:
    fidelity = Fidelity(name="epochs", low=1, high=9, reduction=3)
    text = rungs_text(fidelity, [paused(1.0), paused(1.0), Climber((1.0, 2.0), is_paused=False)])
    assert text == "3 to 1 epochs, 1 to 3, 0 to 9"
    assert fidelity.place(2) == "3 of 9 epochs"
