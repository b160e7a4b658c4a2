"""Histories that make models fail: a chooser must propose a valid point after each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from spearmint.choosers.testing.histories import (
    FLOATS,
    MIXED,
    Distributions,
    assert_legal,
    proposals,
    value_of,
)


def _infinite_at_times(params: dict[str, Any]) -> float:
    return (math.inf, -math.inf, 1.0, 2.0)[int(params["x0"] > 0) + 2 * int(params["x1"] > 0)]


_VALUES: dict[str, Callable[[dict[str, Any]], float]] = {
    "equal": lambda p: 3.0,
    "zero": lambda p: 0.0,
    "1e300": lambda p: float(p["x0"] * 1e300),
    "huge": lambda p: math.copysign(1.7e308, p["x0"]),
    "exponential": lambda p: math.exp(300.0 * p["x0"]),
    "tiny": lambda p: float(p["x0"] * 1e-310),
    "infinite": lambda p: math.inf,
    "some infinite": _infinite_at_times,
}
_BOTH_WAYS = ("huge", "infinite", "some infinite")
_CASES = [
    *((values, i % 2 == 1) for i, values in enumerate(_VALUES)),
    *((values, i % 2 == 0) for i, values in enumerate(_VALUES) if values in _BOTH_WAYS),
]


class DegenerateHistories:
    """Tests of a chooser with few, equal, infinite or failed trials, or trials of other spaces."""

    def study(self, space: Distributions, **given: Any) -> optuna.Study:
        """Return a study for the chooser to continue (see ``study_with``)."""
        raise NotImplementedError

    @pytest.mark.parametrize(("values", "maximize"), _CASES)
    def test_values_of_any_size(self, values: str, maximize: bool) -> None:
        """Values can be equal, huge, tiny or infinite."""
        study = self.study(FLOATS, finished=20, pending=1, value=_VALUES[values], maximize=maximize)
        for params in proposals(study, FLOATS, 2):
            assert_legal(params, FLOATS)

    @pytest.mark.parametrize("finite", [0, 1, 2])
    def test_few_finite_values(self, finite: int) -> None:
        """All other values are infinite."""
        study = self.study(FLOATS, finished=0, pending=1)
        for i in range(8):
            params = dict.fromkeys(FLOATS, -1.5 + 0.4 * i)
            value = float(i) if i < finite else math.inf
            study.add_trial(create_trial(params=params, distributions=FLOATS, value=value))
        for params in proposals(study, FLOATS, 2):
            assert_legal(params, FLOATS)

    def test_trials_that_return_nan(self) -> None:
        """Optuna stores trials that return NaN as failed."""
        study = self.study(FLOATS, finished=5)
        study.optimize(
            lambda trial: math.nan * sum(trial.suggest_float(k, -2.0, 2.0) for k in FLOATS),
            n_trials=3,
        )
        assert [trial.state for trial in study.trials[5:]] == [TrialState.FAIL] * 3
        assert_legal(proposals(study, FLOATS)[0], FLOATS)

    @pytest.mark.parametrize("odd", [[0.0, -1.0, math.inf], [math.nan, 1e-300, 1e300], [None, "x"]])
    def test_durations_of_any_size(self, odd: list[float | str | None]) -> None:
        """The attribute ``seconds`` of a trial can have any value."""
        study = self.study(FLOATS, finished=6)
        for seconds in odd:
            trial = study.ask(FLOATS)
            trial.set_user_attr("seconds", seconds)
            study.tell(trial, value_of(trial.params))
        assert_legal(proposals(study, FLOATS)[0], FLOATS)

    @pytest.mark.parametrize("count", [1, 2, 10])
    def test_duplicate_observations(self, count: int) -> None:
        """A point with several trials is not proposed again."""
        study = self.study(FLOATS, finished=0)
        tried = dict.fromkeys(FLOATS, 0.5)
        for i in range(count):
            study.add_trial(create_trial(params=tried, distributions=FLOATS, value=float(i % 2)))
        params = proposals(study, FLOATS)[0]
        assert_legal(params, FLOATS)
        assert params != tried

    def test_two_hundred_dimensions(self) -> None:
        """A space of 200 dimensions has numbers and categories."""
        space: Distributions = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(150)}
        space |= {f"c{i}": CategoricalDistribution("ab") for i in range(25)}
        space |= {f"i{i}": IntDistribution(0, 9) for i in range(25)}
        first, second = proposals(self.study(space, finished=40), space, 2)
        assert_legal(first, space)
        assert_legal(second, space)
        assert first != second

    def test_ranges_that_changed(self) -> None:
        """Earlier trials can be outside the new bounds."""
        study = self.study(FLOATS, finished=10)
        for low, high in [(-1.0, 1.0), (5.0, 9.0), (-100.0, 100.0)]:
            moved: Distributions = {key: FloatDistribution(low, high) for key in FLOATS}
            self._run(study, moved, 3)

    def test_parameters_that_came_and_went(self) -> None:
        """Trials of one study can have different parameters."""
        study = self.study(FLOATS, finished=10)
        more = FLOATS | {"new": FloatDistribution(0.0, 1.0)}
        less = {"x0": FLOATS["x0"], "other": IntDistribution(0, 3)}
        for space in (more, less, FLOATS):
            self._run(study, space, 3)

    def _run(self, study: optuna.Study, space: Distributions, count: int) -> None:
        for _ in range(count):
            trial = study.ask(space)
            assert_legal(trial.params, space)
            study.tell(trial, value_of(trial.params))

    def test_every_state_of_a_trial(self) -> None:
        """Trials are failed, pruned, running or waiting, and can lack parameters or reports.

        An enqueued point is proposed unchanged.
        """
        study = self.study(FLOATS, finished=6)
        study.tell(study.ask(FLOATS), state=TrialState.FAIL)
        study.tell(study.ask(), state=TrialState.FAIL)
        half = study.ask()
        half.suggest_float("x0", -2.0, 2.0)
        study.tell(half, state=TrialState.FAIL)
        pruned = study.ask(FLOATS)
        pruned.report(4.0, step=1)
        pruned.report(3.0, step=7)
        study.tell(pruned, state=TrialState.PRUNED)
        study.tell(study.ask(FLOATS), state=TrialState.PRUNED)
        study.ask()
        study.ask().suggest_float("x0", -2.0, 2.0)
        study.enqueue_trial({"x0": 0.25})
        seed_point, params = proposals(study, FLOATS, 2)
        assert seed_point["x0"] == 0.25
        assert_legal(seed_point, FLOATS)
        assert_legal(params, FLOATS)

    def test_nothing_but_failed_trials(self) -> None:
        """Each proposal is a different point."""
        study = self.study(FLOATS, finished=0)
        asked = []
        for _ in range(8):
            trial = study.ask(FLOATS)
            asked.append(tuple(trial.params.values()))
            study.tell(trial, state=TrialState.FAIL)
        assert len(set(asked)) == 8

    def test_nothing_to_choose(self) -> None:
        """The space has only parameters with one value, or no parameters."""
        space: Distributions = {"a": IntDistribution(3, 3), "b": CategoricalDistribution(["x"])}
        study = self.study(space, finished=5)
        assert study.ask(space).params == {"a": 3, "b": "x"}
        assert study.ask().params == {}

    @pytest.mark.parametrize("name", MIXED)
    def test_one_parameter(self, name: str) -> None:
        """The space has one parameter, of any kind."""
        space = {"v": MIXED[name]}
        for params in proposals(self.study(space, finished=6), space, 2):
            assert_legal(params, space)
