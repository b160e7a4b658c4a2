"""A noisy search in a space with finitely many points repeats good points; others never do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial

from spearmint.choosers import GPEIChooser, GPEIOptChooser
from spearmint.choosers.rungs import RUNGS

SPACE: dict[str, BaseDistribution] = {
    "depth": IntDistribution(1, 12),
    "rule": CategoricalDistribution(("gini", "entropy")),
}
FAST = {"mcmc_iters": 3, "burnin": 2}
_TRIALS = 30
Params = dict[str, Any]


def bowl(params: Mapping[str, Any]) -> float:
    return 0.05 * (params["depth"] - 4) ** 2 + 0.3 * (params["rule"] == "gini")


def key(params: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(params.values())


@dataclass
class Search:
    """Trials, the points of those that the chooser says are repetitions, and its notices."""

    study: optuna.Study
    repeated: list[Params]
    notices: list[str]

    @property
    def counts(self) -> Counter[tuple[Any, ...]]:
        return Counter(key(trial.params) for trial in self.study.trials)


def searched(
    noise: float = 0.2,
    *,
    n: int = _TRIALS,
    space: Mapping[str, BaseDistribution] = SPACE,
    function: Callable[[Mapping[str, Any]], float] = bowl,
    chooser: GPEIOptChooser | None = None,
    **arguments: Any,
) -> Search:
    chooser = chooser or GPEIOptChooser(seed=0, **FAST, **arguments)
    rng = np.random.default_rng(1)
    search = Search(optuna.create_study(sampler=chooser), [], [])
    for _ in range(n):
        trial = search.study.ask(dict(space))
        if chooser.repeats:
            search.repeated.append(trial.params)
        search.notices += chooser.notices()
        search.study.tell(trial, function(trial.params) + noise * rng.standard_normal())
    return search


@pytest.fixture(scope="module")
def search() -> Search:
    return searched()


def test_under_noise_good_points_are_repeated_and_poor_ones_left_out(search: Search) -> None:
    again = search.counts.total() - len(search.counts)
    assert again == len(search.repeated) > 3
    regrets = [bowl(params) for params in search.repeated]
    assert np.mean(regrets) < np.mean([bowl(t.params) for t in search.study.trials])
    assert max(regrets) < 0.6


def test_one_notice_says_so(search: Search) -> None:
    (notice,) = search.notices
    assert "noisy" in notice
    assert "repeat" in notice
    chooser = GPEIOptChooser(seed=0, **FAST)
    study = optuna.create_study(sampler=chooser)
    points = [key(trial.params) for trial in search.study.trials]
    first = next(i for i, point in enumerate(points) if point in points[:i])
    study.add_trials(search.study.trials[:first])
    assert sum(bool(study.ask(SPACE) and chooser.notices()) for _ in range(4)) == 1, "all running"


def test_a_killed_search_continues_with_the_same_proposals(search: Search) -> None:
    for n in range(_TRIALS - 4, _TRIALS):
        study = optuna.create_study(sampler=GPEIOptChooser(seed=0, **FAST))
        study.add_trials(search.study.trials[:n])
        assert study.ask(SPACE).params == search.study.trials[n].params


@pytest.mark.parametrize(
    "arguments",
    [
        {"noise": 0.0},
        {"replicates": False},
        {"noiseless": True},
        {"chooser": GPEIChooser(seed=0, grid_size=64, **FAST)},
    ],
    ids=["exact", "off", "noiseless", "GPEIChooser"],
)
def test_without_noise_or_if_it_is_off_every_point_is_new(arguments: dict[str, Any]) -> None:
    found = searched(n=16 if "noise" in arguments else 18, **arguments)
    assert not found.repeated
    assert set(found.counts.values()) == {1}


@pytest.mark.parametrize(
    "depth", [FloatDistribution(1, 12), IntDistribution(1, 300)], ids=["continuous", "600 points"]
)
def test_a_space_with_many_points_repeats_nothing(depth: BaseDistribution) -> None:
    assert not searched(n=19, space={"depth": depth, "rule": SPACE["rule"]}).repeated


def test_values_that_repeat_exactly_are_not_noisy() -> None:
    """A rough objective looks noisy; two repetitions show that it is not."""
    rough = np.random.default_rng(5).standard_normal((13, 2))

    def value(params: Mapping[str, Any]) -> float:
        return float(rough[params["depth"], int(params["rule"] == "gini")])

    found = searched(0.0, n=22, function=value)
    assert len(found.repeated) <= 2


def test_a_space_whose_points_were_all_tried_repeats_the_good_ones() -> None:
    space = {"depth": IntDistribution(1, 4), "rule": SPACE["rule"]}
    found = searched(n=26, space=space)
    best = bowl({"depth": 4, "rule": "entropy"})
    by_regret = sorted(
        (bowl(dict(zip(space, point, strict=True))), n) for point, n in found.counts.items()
    )
    assert by_regret[0][0] == best
    good, poor = by_regret[:4], by_regret[4:]
    assert sum(n for _, n in good) > 2 * sum(n for _, n in poor)


def test_a_batch_repeats_and_proposes_new_points(search: Search) -> None:
    chooser = GPEIOptChooser(seed=0, **FAST)
    study = optuna.create_study(sampler=chooser)
    study.add_trials(search.study.trials[:18])
    marks = []
    points = []
    for params in islice(chooser.ask_many(study, SPACE), 6):
        points.append(key(params))
        marks.append(chooser.repeats)
    tried = {key(trial.params) for trial in study.trials}
    is_known = [point in tried for point in points]
    assert [mark for mark, known in zip(marks, is_known, strict=True) if known].count(False) == 0
    assert any(marks)
    assert len(set(points)) > 1, "the value of a running repetition is accounted for"


def test_trials_at_rungs_are_not_repeated(search: Search) -> None:
    study = optuna.create_study(sampler=GPEIOptChooser(seed=0, **FAST))
    for trial in search.study.trials[:16]:
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                params=trial.params,
                distributions=SPACE,
                value=trial.value,
                user_attrs={RUNGS: {"values": [trial.value], "paused": False}},
            )
        )
    tried = {key(trial.params) for trial in study.trials}
    for _ in range(2):
        assert key(study.ask(SPACE).params) not in tried
