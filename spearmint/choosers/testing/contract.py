"""The contract of a chooser: what proposals depend on, their values, and no side effects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import TrialState

from spearmint.choosers.arguments import convert_args
from spearmint.choosers.base import Chooser
from spearmint.choosers.registry import chooser_class, make_chooser
from spearmint.choosers.testing.degenerate import DegenerateHistories
from spearmint.choosers.testing.histories import (
    FLOATS,
    MIXED,
    Distributions,
    assert_legal,
    proposals,
    study_with,
    value_of,
)
from spearmint.errors import InputError

_HISTORIES = [(0, 0), (12, 0), (12, 3)]  # finished and pending trials
_OTHER_PROCESS = """
import json, sys, optuna
from spearmint.choosers.testing.histories import MIXED, proposals, study_with
optuna.logging.set_verbosity(optuna.logging.ERROR)
name, args, histories = json.loads(sys.argv[1])
print(json.dumps([
    proposals(study_with(name, MIXED, finished=n, pending=p, args=args), MIXED, 2)
    for n, p in histories
]))
"""

SPACES: dict[str, Distributions] = {
    "all floats": {"x": FloatDistribution(-8e307, 8e307), "y": FloatDistribution(0.0, 1e-300)},
    "log": {"x": FloatDistribution(1e-9, 1e9, log=True), "n": IntDistribution(1, 10**9, log=True)},
    "steps": {"x": FloatDistribution(-3.0, 0.75, step=0.125), "y": FloatDistribution(0, 9, step=3)},
    "few": {"n": IntDistribution(1, 2), "c": CategoricalDistribution(["a", "b"])},
    "large": {"n": IntDistribution(-(2**51), 2**51), "m": IntDistribution(-9, 10**6, step=1)},
    "types": {"c": CategoricalDistribution(["a", 1, 2.5, None, True])},
    "one value": {"x": FloatDistribution(2.0, 2.0), "n": IntDistribution(4, 4)},
}


class ChooserContract(DegenerateHistories):
    """The tests of a chooser. Subclass it, name the subclass ``Test...`` and set ``chooser``.

    Attributes:
        chooser: Value of ``--method``: ``package.module:Class`` or a registered name.
        args: Arguments of its constructor, as text.
    """

    chooser: ClassVar[str]
    args: ClassVar[Mapping[str, str]] = {}

    def study(self, space: Distributions, **given: Any) -> optuna.Study:
        """Return a study for the chooser to continue (see ``study_with``)."""
        return study_with(self.chooser, space, args=self.args, **given)

    def make(self, **given: Any) -> BaseSampler:
        """Return the chooser; without ``seed`` it draws a random seed."""
        kind = chooser_class(self.chooser)
        return kind(**convert_args(self.chooser, kind, self.args), **given)

    def in_this_process(self) -> list[list[dict[str, Any]]]:
        """Return proposals for several histories."""
        return [
            proposals(self.study(MIXED, finished=n, pending=p), MIXED, 2) for n, p in _HISTORIES
        ]

    def test_the_same_history_and_seed_give_the_same_proposal(self) -> None:
        """The same history and seed give the same proposal within a process."""
        assert self.in_this_process() == self.in_this_process()

    def test_another_process_gives_the_same_proposal(self) -> None:
        """A killed search continues with the same proposals."""
        arguments = json.dumps([self.chooser, dict(self.args), _HISTORIES])
        done = subprocess.run(
            [sys.executable, "-c", _OTHER_PROCESS, arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == self.in_this_process()

    def test_a_chooser_asked_before_proposes_like_a_new_one(self) -> None:
        """The chooser has no state between calls."""
        used, fresh = self.study(MIXED), self.study(MIXED)
        expected = proposals(fresh, MIXED, 2)
        other = self.study(FLOATS)
        other.sampler = used.sampler
        proposals(other, FLOATS, 2)
        assert proposals(used, MIXED, 2) == expected

    def test_the_storage_does_not_matter(self, tmp_path: Path) -> None:
        """SQLite and memory give the same proposals."""
        stored = self.study(MIXED, pending=2, storage=f"sqlite:///{tmp_path / 'a b.db'}")
        assert proposals(stored, MIXED, 2) == proposals(self.study(MIXED, pending=2), MIXED, 2)

    @pytest.mark.parametrize("finished", [0, 12])
    def test_another_seed_gives_another_proposal(self, finished: int) -> None:
        """Seeds can be negative and larger than 64 bits."""
        studies = [self.study(FLOATS, finished=finished, seed=s) for s in (0, 1, -1, 2**70)]
        points = [proposals(study, FLOATS) for study in studies]
        assert all(a != b for i, a in enumerate(points) for b in points[:i])

    def test_without_a_seed_two_choosers_differ(self) -> None:
        """Each chooser draws a random seed."""
        points = [optuna.create_study(sampler=self.make()).ask(FLOATS).params for _ in range(2)]
        assert points[0] != points[1]

    @pytest.mark.parametrize("pending", [0, 2])
    def test_maximising_is_minimising_the_negative(self, pending: int) -> None:
        """The chooser respects the direction of the study."""
        low = self.study(MIXED, pending=pending)
        high = self.study(MIXED, pending=pending, maximize=True, value=_negative_value)
        assert proposals(low, MIXED, 2) == proposals(high, MIXED, 2)

    def test_brackets_of_hyperband_do_not_matter(self) -> None:
        """The chooser uses the trials of all brackets."""
        plain, bracketed = self.study(FLOATS), self.study(FLOATS)
        bracketed.pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
        for study in (plain, bracketed):
            first = study.ask(FLOATS)
            first.report(1.0, step=1)
            first.should_prune()  # the pruner creates its brackets in the first call
        assert proposals(bracketed, FLOATS, 4) == proposals(plain, FLOATS, 4)

    @pytest.mark.parametrize("finished", [0, 12])
    def test_the_study_is_not_changed(self, finished: int) -> None:
        """A proposal writes only its parameters: no attribute, no other trial."""
        study = self.study(MIXED, finished=finished, pending=1)
        before = study.get_trials(deepcopy=True)
        attributes = _attributes(study)
        proposals(study, MIXED)
        *others, asked = study.get_trials(deepcopy=True)
        assert others == before
        assert _attributes(study) == attributes
        assert (asked.user_attrs, asked.system_attrs) == ({}, {})
        assert (asked.state, asked.value) == (TrialState.RUNNING, None)

    @pytest.mark.parametrize("finished", [0, 1, 12])
    def test_proposals_are_legal_and_distinct(self, finished: int) -> None:
        """Proposals are valid and distinct while earlier trials run."""
        study = self.study(MIXED, finished=finished)
        asked = proposals(study, MIXED, 6)
        for params in asked:
            assert_legal(params, MIXED)
        tried = [trial.params for trial in study.get_trials(states=[TrialState.COMPLETE])]
        points = [repr(params) for params in asked + tried]
        assert len(set(points)) == len(points)

    @pytest.mark.parametrize(("finished", "pending"), [(0, 0), (1, 0), (12, 3)])
    def test_many_proposals_are_legal_and_distinct(self, finished: int, pending: int) -> None:
        """``ask_many`` stores nothing, starts with the point of ``ask``, and repeats no point."""
        study = self.study(MIXED, finished=finished, pending=pending)
        if not isinstance(study.sampler, Chooser):
            pytest.skip("a sampler of Optuna")
        before = study.get_trials(deepcopy=True)
        asked = list(islice(study.sampler.ask_many(study, MIXED), 6))
        for params in asked:
            assert_legal(params, MIXED)
        points = [repr(params) for params in asked]
        assert len(set(points)) == len(points)
        assert study.get_trials() == before
        more = next(study.sampler.ask_many(study, MIXED, ahead=asked))
        assert repr(more) not in points
        assert proposals(study, MIXED) == asked[:1]

    @pytest.mark.parametrize("space", SPACES)
    def test_many_proposals_are_legal_in_every_kind_of_space(self, space: str) -> None:
        """Values of ``ask_many`` are within bounds, and of the right types."""
        study = self.study(SPACES[space], finished=7, pending=1)
        if not isinstance(study.sampler, Chooser):
            pytest.skip("a sampler of Optuna")
        for params in islice(study.sampler.ask_many(study, SPACES[space]), 4):
            assert_legal(params, SPACES[space])

    @pytest.mark.parametrize("space", SPACES)
    def test_proposals_are_legal_in_every_kind_of_space(self, space: str) -> None:
        """Values are within bounds, integers are ints, and steps and choices are exact."""
        study = self.study(SPACES[space], finished=7, pending=1)
        for params in proposals(study, SPACES[space], 2):
            assert_legal(params, SPACES[space])

    def test_it_works_in_optuna_alone(self) -> None:
        """Six trials of one parameter have six different points."""
        study = optuna.create_study(sampler=make_chooser(self.chooser, self.args, seed=0))
        study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=6)
        assert len({trial.params["x"] for trial in study.trials}) == 6

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_parameters_may_be_declared_as_a_trial_runs(self, n_jobs: int) -> None:
        """Parameters can depend on each other, and threads can propose at the same time."""
        study = optuna.create_study(sampler=make_chooser(self.chooser, self.args, seed=3))
        study.optimize(_conditional, n_trials=10, n_jobs=n_jobs)
        assert len(study.trials) == 10
        if n_jobs == 1:
            # Two threads can propose before either of them has stored its parameters.
            assert len({repr(trial.params) for trial in study.trials}) == 10

    def test_two_objectives_are_refused_unless_supported(self) -> None:
        """A study with two objectives raises InputError, or ``several_objectives`` is true."""
        study = optuna.create_study(directions=["minimize", "maximize"])
        study.sampler = make_chooser(self.chooser, self.args, seed=0)
        if getattr(study.sampler, "several_objectives", False):
            for value in range(9):
                study.tell(study.ask(FLOATS), (float(value), float(value % 3)))
            return
        with pytest.raises(InputError, match=r"objective.*\b2\b"):
            study.ask(FLOATS)


def _attributes(study: optuna.Study) -> tuple[dict[str, Any], dict[str, Any]]:
    storage, study_id = study._storage, study._study_id
    return storage.get_study_user_attrs(study_id), storage.get_study_system_attrs(study_id)


def _negative_value(params: dict[str, Any]) -> float:
    return -value_of(params)


def _conditional(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    if trial.suggest_categorical("kind", ["plain", "deep"]) == "deep":
        return x * x + trial.suggest_int("depth", 1, 5)
    return abs(x)
