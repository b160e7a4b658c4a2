"""Choosers in spaces where some parameters are only active where others have certain values."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import TPESampler
from optuna.trial import create_trial

from spearmint.choosers.base import Chooser
from spearmint.choosers.registry import make_chooser
from spearmint.choosers.tree import Tree
from spearmint.conditions import Condition
from spearmint.controller.warm_start import warm_points
from spearmint.model import Experiment, Kind, Language, Trial, TrialState, Variable
from spearmint.store.distributions import tree_of

ALL = ["RandomChooser", "SequentialChooser", "GPEIOptChooser", "GPEIChooser", "GPEIperSecChooser"]
ALL += ["GPConstrainedEIChooser", "RandomForestEIChooser", "CMAChooser"]
DISTINCT = [name for name in ALL if name != "CMAChooser"]


def enum(name: str, *options: str, when: tuple[Condition, ...] = ()) -> Variable:
    return Variable(name=name, kind=Kind.ENUM, options=options, when=when)


def whole(name: str, high: int, *when: Condition) -> Variable:
    return Variable(name=name, kind=Kind.INT, low=1, high=high, when=when)


def real(name: str, *when: Condition) -> Variable:
    return Variable(name=name, kind=Kind.FLOAT, low=0, high=1, when=when)


SVM, NET = Condition("model", ("svm",)), Condition("model", ("net",))
SPACE = (
    real("C", SVM),
    enum("model", "svm", "net", "constant"),
    enum("one", "only", when=(SVM,)),
    enum("kernel", "rbf", "poly", when=(Condition("one", ("only",)),)),
    whole("degree", 3, Condition("kernel", ("poly",))),
    whole("layers", 3, NET),
    real("w", Condition("layers", (2, 3))),
)
FINITE = (
    enum("model", "svm", "net", "constant"),
    whole("degree", 3, SVM),
    whole("layers", 2, NET),
)


def tree(variables: tuple[Variable, ...] = SPACE) -> Tree:
    found = tree_of(variables)
    assert found is not None
    return found


def loss(params: dict[str, Any]) -> float:
    known = {"svm": 0.1, "net": 0.2, "constant": 0.9}[params["model"]]
    return float(known + sum(v for v in params.values() if isinstance(v, float | int)))


def study_of(name: str, variables: tuple[Variable, ...], finished: int = 0) -> optuna.Study:
    """Return a study with ``finished`` trials that the chooser proposed."""
    few = {"n_trees": "20"} if name == "RandomForestEIChooser" else {}
    sampler = make_chooser(name, few, seed=4)
    if isinstance(sampler, Chooser):
        sampler.tree = tree(variables)
    study = optuna.create_study(sampler=sampler)
    for _ in range(finished):
        trial = asked(study, variables)
        study.tell(trial, loss(trial.params))
    return study


def asked(study: optuna.Study, variables: tuple[Variable, ...]) -> optuna.Trial:
    trial = study.ask()
    tree(variables).suggest(trial)
    return trial


def assert_active(params: dict[str, Any]) -> None:
    """Raise AssertionError unless ``params`` has exactly the parameters of its branch."""
    expected = {"model"}
    if params["model"] == "svm":
        expected |= {"C", "one", "kernel"} | ({"degree"} if params["kernel"] == "poly" else set())
    if params["model"] == "net":
        expected |= {"layers"} | ({"w"} if params["layers"] > 1 else set())
    assert set(params) == expected


@pytest.mark.parametrize("name", ALL)
def test_a_trial_has_the_parameters_of_its_branch(name: str) -> None:
    study = study_of(name, SPACE, finished=14)
    many = list(islice(study.sampler.ask_many(study, tree().distributions), 5))
    following = [asked(study, SPACE).params for _ in range(2)]
    points = [trial.params for trial in study.trials] + many
    for params in points:
        assert_active(params)
    assert many[0] == following[0]
    if name in DISTINCT:
        finished = [repr(sorted(t.params.items())) for t in study.trials]
        assert max(Counter(finished).values()) == 1
        assert max(Counter(repr(point) for point in many).values()) == 1
    assert {point["model"] for point in points} >= {"svm", "net"}


@pytest.mark.parametrize("name", DISTINCT)
def test_a_branch_with_few_points_is_searched_once(name: str) -> None:
    study = study_of(name, FINITE, finished=6)
    points = [repr(sorted(trial.params.items())) for trial in study.trials]
    assert len(set(points)) == 6  # 3 svm, 2 net, 1 constant
    asked(study, FINITE)  # nothing is left: a point is repeated


def test_a_sampler_of_optuna_gets_only_active_parameters() -> None:
    study = optuna.create_study(sampler=TPESampler(seed=1, n_startup_trials=5))
    for _ in range(12):
        trial = asked(study, SPACE)
        assert_active(trial.params)
        study.tell(trial, loss(trial.params))


def test_trials_of_other_programs_count_by_their_branch() -> None:
    """Values of inactive parameters are ignored, and trials that lack an active one."""
    study = study_of("GPEIOptChooser", SPACE)
    known = tree().distributions
    extra = {"model": "constant", "C": 0.25, "kernel": "poly"}
    partial = {"model": "net"}
    for params in (extra, partial, {"model": "net", "layers": 1}, {"model": "net", "layers": 2}):
        distributions = {name: known[name] for name in params}
        study.add_trial(create_trial(params=params, distributions=distributions, value=0.0))
    sampler = study.sampler
    past = sampler._history(study, study.get_trials(), tree().searched)
    assert [trial.number for trial in past.trials] == [0, 2]
    assert np.array_equal(past.points[0], past.space.settle(past.points)[0])
    extra_c = list(tree().searched).index("C")
    assert past.points[0, extra_c] == 0.5


def test_the_model_finds_the_best_branch() -> None:
    study = study_of("GPEIOptChooser", SPACE, finished=24)
    best = study.best_trial.params
    assert (best["model"], best["kernel"]) == ("svm", "rbf")
    assert best["C"] < 0.05


def test_objectives_and_limits_in_a_conditional_space() -> None:
    sampler = make_chooser("GPEIOptChooser", {}, seed=4)
    sampler.tree = tree()
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    for _ in range(10):
        trial = asked(study, SPACE)
        assert_active(trial.params)
        trial.set_constraint("limit", trial.params.get("C", 0.0) - 0.8)
        study.tell(trial, [loss(trial.params), trial.params.get("w", 0.5)])


def test_a_region_starts_from_the_best_points_of_others() -> None:
    """A point has the variables of its branch only."""
    finished = []
    for region in range(2):
        params = [
            {"model": ("svm",), "C": (0.1 * i,), "one": ("only",), "kernel": ("rbf",)}
            if i % 2
            else {"model": ("net",), "layers": (2,), "w": (0.1 * i,)}
            for i in range(8)
        ]
        finished.append(
            [
                Trial(
                    id=i + 1, state=TrialState.COMPLETE, params=p, value=float(abs(i - 4 - region))
                )
                for i, p in enumerate(params)
            ]
        )
    experiment = Experiment(
        path=Path("config.pb"), name="x", language=Language.PYTHON, variables=SPACE
    )
    points = warm_points(experiment, finished, 3)
    assert points
    for point in points:
        assert_active(point | ({"one": "only"} if point["model"] == "svm" else {}))
