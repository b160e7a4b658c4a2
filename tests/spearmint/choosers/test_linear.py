"""Choosers propose only points that meet the linear constraints."""

from __future__ import annotations

from itertools import islice
from typing import Any

import optuna
import pytest
from optuna.trial import create_trial

from spearmint.choosers.base import Chooser
from spearmint.choosers.feasible_sampler import FeasibleSampler
from spearmint.choosers.history import History
from spearmint.choosers.model_chooser import ModelChooser
from spearmint.choosers.registry import make_chooser
from spearmint.choosers.tree import Tree
from spearmint.conditions import Condition
from spearmint.config.linear import linear_constraints
from spearmint.gp.numerics import Array
from spearmint.linear import violated
from spearmint.model import Kind, Variable
from spearmint.store.distributions import tree_of

EACH_SPACE = ["RandomChooser", "SequentialChooser", "GPEIOptChooser", "CMAChooser"]
OTHERS = ["GPEIChooser", "GPEIperSecChooser", "GPConstrainedEIChooser", "RandomForestEIChooser"]
QUICK = {"mcmc_iters": "2", "burnin": "1"}
FEW = {
    "RandomForestEIChooser": {"n_trees": "10"},
    "GPEIChooser": {"grid_size": "256", **QUICK},
    **dict.fromkeys(["GPEIOptChooser", "GPEIperSecChooser", "GPConstrainedEIChooser"], QUICK),
}
SVM = (Condition("model", ("svm",)),)


def real(name: str, low: float = 0.0, *, log: bool = False, when: Any = ()) -> Variable:
    return Variable(name=name, kind=Kind.FLOAT, low=low, high=1, log=log, when=when)


def whole(name: str, high: int, size: int = 1) -> Variable:
    return Variable(name=name, kind=Kind.INT, size=size, low=1, high=high)


MODEL = Variable(name="model", kind=Kind.ENUM, options=("svm", "net"))
SPACES: dict[str, tuple[tuple[Variable, ...], tuple[str, ...]]] = {
    "tiny": (tuple(real(f"x{i}") for i in range(4)), ("x0 + x1 + x2 + x3 <= 0.2",)),
    "log": (
        (real("lr", 1e-6, log=True), real("least", 1e-6, log=True), whole("u", 400)),
        ("least <= lr / 10", "u <= 100 - 90 * lr"),
    ),
    "whole": ((whole("n", 30, size=3), real("x")), ("n[0] + n[1] + n[2] == 32", "n[0] > n[1]")),
    "when": ((MODEL, real("C", when=SVM), real("x")), ("C + x < 0.01",)),
}


def tree(space: str) -> Tree:
    variables, texts = SPACES[space]
    found = tree_of(variables, tuple(c for t in texts for c in linear_constraints(t, variables)))
    assert found is not None
    return found


def loss(params: dict[str, Any]) -> float:
    pairs = enumerate(params.values())
    return sum((float(v) - 0.3 * i) ** 2 if not isinstance(v, str) else 0.1 for i, v in pairs)


def study_of(sampler: Any, known: Tree, finished: int) -> optuna.Study:
    if isinstance(sampler, Chooser):
        sampler.tree = known
    else:
        sampler = FeasibleSampler(sampler, known)
    study = optuna.create_study(sampler=sampler)
    for _ in range(finished):
        trial = study.ask()
        known.suggest(trial)
        study.tell(trial, loss(trial.params))
    return study


@pytest.mark.parametrize(
    ("name", "space"),
    [(name, space) for name in EACH_SPACE for space in SPACES]
    + [(name, "when") for name in OTHERS],
)
def test_all_proposals_are_feasible_and_new(name: str, space: str) -> None:
    known = tree(space)
    study = study_of(make_chooser(name, FEW.get(name, {}), seed=4), known, 6)
    many = list(islice(study.sampler.ask_many(study, known.distributions), 2))
    points = [trial.params for trial in study.trials] + many
    for point in points:
        assert violated(known.linear, point) is None, point
    assert len({known.key(point) for point in points}) == 8
    next_trial = study.ask()
    known.suggest(next_trial)
    assert next_trial.params == many[0]


@pytest.mark.parametrize("name", ["TPESampler", "GPSampler", "NSGAIISampler"])
@pytest.mark.parametrize("space", ["tiny", "when"])
def test_samplers_of_optuna_are_feasible(name: str, space: str) -> None:
    if name == "GPSampler":
        pytest.importorskip("torch")
    known = tree(space)
    study = study_of(make_chooser(name, {}, seed=4), known, 12)
    for trial in study.trials:
        assert known.is_whole(trial.params)
        assert violated(known.linear, trial.params) is None


@pytest.mark.parametrize("name", ["SequentialChooser", "GPEIOptChooser", "TPESampler"])
def test_a_queued_point_is_completed_inside(name: str) -> None:
    known = tree("tiny")
    study = study_of(make_chooser(name, FEW.get(name, {}), seed=4), known, 6)
    for fixed in ({"x0": 0.19, "x2": 0.005}, {"x1": 0.2}):
        study.enqueue_trial(fixed)
        trial = study.ask()
        known.suggest(trial)
        assert trial.params.items() >= fixed.items()
        assert violated(known.linear, trial.params) is None
    study.enqueue_trial({"x0": 0.5})  # of another program: nothing completes it
    trial = study.ask()
    known.suggest(trial)
    assert trial.params["x0"] == 0.5


def test_the_optimum_at_a_limit_is_found() -> None:
    variables = (real("a"), real("b"), real("c"))
    known = tree_of(variables, tuple(linear_constraints("a >= b >= c", variables)))
    assert known is not None
    study = study_of(make_chooser("GPEIOptChooser", QUICK, seed=4), known, 12)
    assert study.best_value == pytest.approx(0.18, abs=2e-3)  # at a = b = c = 0.3


def test_trials_that_violate_a_constraint_are_observations() -> None:
    known = tree("tiny")
    sampler = make_chooser("GPEIOptChooser", QUICK, seed=4)
    assert isinstance(sampler, ModelChooser)
    study = study_of(sampler, known, 5)
    outside = dict.fromkeys(known.distributions, 0.9)
    study.add_trial(create_trial(params=outside, distributions=known.distributions, value=-9.0))
    past = sampler._history(study, study.get_trials(), known.searched)
    assert past.y.min() == -9.0
    for point in islice(sampler.ask_many(study, known.distributions), 4):
        assert violated(known.linear, point) is None


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("goals", [1, 2])
def test_with_measured_constraints_and_several_objectives(goals: int, limits: bool) -> None:
    known = tree("tiny")
    sampler = make_chooser("GPEIOptChooser", QUICK, seed=4)
    assert isinstance(sampler, Chooser)
    sampler.tree = known
    study = optuna.create_study(sampler=sampler, directions=["minimize"] * goals)
    outside = dict.fromkeys(known.distributions, 0.9)
    worst = [-9.0] * goals
    study.add_trial(create_trial(params=outside, distributions=known.distributions, values=worst))
    for _ in range(8):
        trial = study.ask()
        known.suggest(trial)
        assert violated(known.linear, trial.params) is None
        if limits:
            trial.set_constraint("least", 0.01 - trial.params["x0"])
        study.tell(trial, [loss(trial.params), trial.params["x3"]][:goals])


class Corner(ModelChooser):
    """A chooser of a user that knows no constraints."""

    def best_point(self, past: History, rng: Any) -> Array:
        return past.space.snap(rng.random((1, len(past.space))) * 0.1 + 0.9)[0]


def test_points_of_a_custom_chooser_are_moved_inside() -> None:
    known = tree("tiny")
    study = study_of(Corner(seed=1), known, 8)
    assert all(violated(known.linear, trial.params) is None for trial in study.trials)


def test_a_parameter_with_one_value_counts() -> None:
    variables = (whole("n", 1), real("x"))
    known = tree_of(variables, tuple(linear_constraints("n + x <= 1.5", variables)))
    assert known is not None
    (row,) = known.space(known.searched).linear
    assert (row.at, row.high) == ((0,), 0.5)
    study = study_of(make_chooser("TPESampler", {}, seed=4), known, 12)
    assert all(trial.params["x"] <= 0.5 for trial in study.trials)


def test_a_queued_branch_is_completed_by_a_sampler_of_optuna() -> None:
    variables = (MODEL, real("C", when=SVM), real("x"))
    known = tree_of(variables, tuple(linear_constraints("C + x <= 0.001", variables)))
    assert known is not None
    study = study_of(make_chooser("TPESampler", {}, seed=4), known, 2)
    for _ in range(3):
        study.enqueue_trial({"model": "svm"})
        trial = study.ask()
        known.suggest(trial)
        assert set(trial.params) == {"model", "C", "x"}
        assert violated(known.linear, trial.params) is None


def test_points_of_broken_trials_are_not_repeated_before_the_first_value() -> None:
    study = study_of(make_chooser("GPEIOptChooser", QUICK, seed=1), tree("when"), finished=0)
    asked = []
    for _ in range(12):
        trial = study.ask()
        study.sampler.tree.suggest(trial)
        asked.append(tuple(sorted(trial.params.items())))
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    assert len(set(asked)) == len(asked)
