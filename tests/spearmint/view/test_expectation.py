"""What a model expects of the recommended trial, in words."""

from __future__ import annotations

from spearmint.choosers.recommendation import Estimate
from spearmint.model import Trial, TrialState
from spearmint.store.recommending import Recommendation
from spearmint.view.expectation import expectation


def trial(number: int, value: float, x: float) -> Trial:
    return Trial(id=number, state=TrialState.COMPLETE, params={"x": [x]}, value=value)


def lines(other_x: float) -> list[str]:
    """Return the lines of a point with four trials, and a luckiest trial at ``other_x``."""
    estimate = Estimate(number=0, expected=0.5, sd=0.1, noise_sd=0.3, trials=4, mean=0.55)
    found = Recommendation(
        trial=trial(1, 0.7, 1.0),
        luckiest=trial(2, 0.1, other_x),
        expected=estimate,
        luckiest_expected=Estimate(number=1, expected=0.6, sd=0.2, noise_sd=0.3),
    )
    return expectation(found, maximize=False)


def test_the_trials_at_the_point_are_counted() -> None:
    assert lines(2.0)[1:] == [
        "4 trials at this point, mean value: 0.55",
        "lowest value: 0.1, trial 2 (expected: 0.60 ± 0.20)",
    ]


def test_the_luckiest_trial_can_be_at_the_same_point() -> None:
    assert lines(1.0)[-1] == "lowest value: 0.1, trial 2 at the same point"
