"""Rungs, and which paused trial continues."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest

from spearmint.fidelity import (
    Climber,
    Fidelity,
    goal_of,
    lowest_trusted,
    next_to_resume,
    rungs_in,
    rungs_text,
)

THIRDS = Fidelity(high=27, reduction=3)
HALVES = Fidelity(high=8, reduction=2)


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
    assert next_to_resume(trials, THIRDS) is None, "a third of two is none"
    trials[3] = paused(2.0)
    assert next_to_resume(trials, THIRDS) == 2
    trials[2] = Climber((1.0,), is_paused=False)
    assert next_to_resume(trials, THIRDS) is None, "the best one continues already"
    trials |= {4: paused(0.5, 9.0), 5: paused(0.6, 8.0), 6: paused(0.7, 7.0)}
    assert next_to_resume(trials, THIRDS) == 6, "the highest rung first, by its own values"


def test_a_loss_that_is_not_finite_never_continues() -> None:
    trials = {i: paused(value) for i, value in enumerate((math.inf, math.inf, math.nan, math.inf))}
    assert next_to_resume(trials, HALVES) is None


def test_an_unknown_loss_does_not_count_at_its_rung() -> None:
    trials = {1: paused(1.0), 2: paused(2.0), 3: Climber((math.nan, 0.5), is_paused=False)}
    assert next_to_resume(trials, THIRDS) is None, "two trials are known at the first rung"
    assert next_to_resume({**trials, 3: Climber((0.25, 0.5), is_paused=False)}, THIRDS) is None
    assert next_to_resume({**trials, 3: Climber((9.0, 0.5), is_paused=False)}, THIRDS) == 1


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
    assert next_to_resume({n: paused(1.0) for n in (5, 3, 9)}, THIRDS) == 3


def searched(count: int, curve) -> dict[int, Climber]:
    """Return the trials of a search with one worker, whose curves are those of ``curve``."""
    trials: dict[int, Climber] = {}
    curves = {}
    for number in range(count):
        curves[number], chosen = curve(), number
        trials[number] = Climber((), is_paused=False)
        while chosen is not None:
            others = [each for n, each in trials.items() if n != chosen]
            losses = tuple(curves[chosen][: len(trials[chosen].losses) + 1])
            reached = Climber(losses, len(losses) < len(THIRDS.rungs), trials[chosen].goal)
            trials[chosen] = replace(reached, goal=goal_of(reached, others, THIRDS))
            chosen = next_to_resume(trials, THIRDS)
    return trials


def test_where_curves_cross_trials_with_poor_early_losses_train_to_the_end() -> None:
    dice = random.Random(1)

    def crossing() -> list[float]:
        early = dice.random()
        return [early, early, early, 1 - early]

    trials = searched(150, crossing)
    complete = [each.losses for each in trials.values() if len(each.losses) == 4]
    assert lowest_trusted(complete, 4) == 3, "no rung predicts the last one"
    assert min(losses[-1] for losses in complete) < 0.1, "the best third at a rung ends above 0.6"


def test_a_rung_is_trusted_if_it_orders_the_good_trials() -> None:
    agree = [(x, x, x) for x in (1.0, 2.0, 3.0, 4.0, 5.0)]
    late = [(6 - x, x, x) for x, _, _ in agree]
    never = [(6 - x, 6 - x, x) for x, _, _ in agree]
    found = [lowest_trusted(curves, 3) for curves in (agree, late, never)]
    assert found == [0, 1, 2]
    assert lowest_trusted(never[:2], 3) == 0, "two trials are not enough"
    assert lowest_trusted([], 3) == 0
    unknown = [(math.nan, math.nan, x) for x in range(20)]
    assert lowest_trusted([*unknown, *late], 3) == 1
    diverged = [(9.0, 9.0, math.inf)] * 20
    assert lowest_trusted([*diverged, *never], 3) == 2, "that a rung finds the worst does not count"
    wrong_late = [(x, 6 - x, x) for x, _, _ in agree]
    assert lowest_trusted(wrong_late, 3) in (0, 2), "a lower rung does not predict better"


def test_a_trial_continues_to_its_goal_before_others() -> None:
    trials = {n: paused(float(n)) for n in range(6)}
    assert next_to_resume(trials, THIRDS) == 0
    trials[5] = Climber((5.0,), is_paused=True, goal=2)
    assert next_to_resume(trials, THIRDS) == 5
    trials[5] = Climber((5.0, 4.0), is_paused=True, goal=2)
    assert next_to_resume(trials, THIRDS) == 0
    assert goal_of(Climber((5.0,), True, goal=3), trials.values(), THIRDS) == 3, "it is kept"


@pytest.mark.parametrize("loss", [math.inf, -math.inf])
def test_a_trial_that_diverged_is_not_trained_to_the_end(loss: float) -> None:
    others = [Climber((float(n),), is_paused=True) for n in range(400)]
    assert goal_of(Climber((1.0,), False), others, THIRDS) == 4, "the hedge is due"
    assert goal_of(Climber((loss,), False), others, THIRDS) == 0
    assert goal_of(Climber((1.0, loss), False, goal=4), others, THIRDS) == 0


def test_a_search_ends_with_about_a_third_of_each_rung_on_the_next() -> None:
    dice, rungs = random.Random(1), 4
    trials = searched(300, lambda: [value := dice.random()] + [value] * 3)
    reached = [sum(len(t.losses) > rung for t in trials.values()) for rung in range(rungs)]
    assert reached[0] == 300
    assert all(b >= a // 3 for a, b in itertools.pairwise(reached))
    assert reached[-1] < 300 / 9, "few train to the end"
    steps = [THIRDS.rungs[len(trial.losses) - 1] for trial in trials.values()]
    hedged = sum(s for s, t in zip(steps, trials.values(), strict=True) if t.goal == rungs)
    assert 0.05 < hedged / sum(steps) < 0.15, "a tenth is for trials that always continue"


def test_the_text_counts_the_trials_of_each_rung() -> None:
    fidelity = Fidelity(name="epochs", low=1, high=9, reduction=3)
    text = rungs_text(fidelity, [paused(1.0), paused(1.0), Climber((1.0, 2.0), is_paused=False)])
    assert text == "3 to 1 epochs, 1 to 3, 0 to 9"
    assert fidelity.place(2) == "3 of 9 epochs"
