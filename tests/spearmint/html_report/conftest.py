"""Searches in memory, for reports."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import TrialState as OptunaState

from spearmint.layout import Layout
from spearmint.model import Experiment, Kind, Language, Value, Variable
from spearmint.store.distributions import distributions
from spearmint.store.session import Session
from spearmint.store.study import Study

Flat = dict[str, Any]


@dataclass
class Search:
    """A search to fill with trials; ``session`` stores them."""

    root: Path
    variables: Sequence[Variable]
    name: str = "made-up"
    maximize: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    trials: list[FrozenTrial] = field(default_factory=list)

    def complete(
        self, value: float | Callable[[Flat], float], reports: Mapping[int, float] | None = None
    ) -> None:
        params = self._params()
        number = value(params) if callable(value) else value
        self._add(params, value=number, user_attrs={"seconds": 90.0}, intermediate_values=reports)

    def pruned(self, reports: Mapping[int, float]) -> None:
        self._add(self._params(), state=OptunaState.PRUNED, intermediate_values=reports)

    def broken(self, reason: str = "boom", tail: str = "") -> None:
        attrs = {"reason": reason, "tail": tail, "seconds": 1.0}
        self._add(self._params(), state=OptunaState.FAIL, user_attrs=attrs)

    def running(self) -> None:
        self._add(self._params(), state=OptunaState.RUNNING)

    def session(self) -> Session:
        experiment = Experiment(
            path=self.root / "config.pb",
            name=self.name,
            language=Language.PYTHON,
            variables=tuple(self.variables),
            maximize=self.maximize,
        )
        storage = InMemoryStorage()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(
            storage=storage,
            study_name=self.name,
            direction="maximize" if self.maximize else "minimize",
        )
        study.add_trials(self.trials)
        return Session(experiment, Layout(self.root), Study(experiment, "", storage, study))

    def _add(self, params: Flat, **fields: Any) -> None:
        space = distributions(self.variables)
        self.trials.append(create_trial(params=params, distributions=space, **fields))

    def _params(self) -> Flat:
        return {
            name: self._value(variable)
            for variable in self.variables
            for name in variable.elements()
        }

    def _value(self, variable: Variable) -> Value:
        if variable.kind is Kind.ENUM:
            return self.rng.choice(variable.options)
        if variable.kind is Kind.INT:
            return self.rng.randint(int(variable.low), int(variable.high))
        if variable.log:
            return math.exp(self.rng.uniform(math.log(variable.low), math.log(variable.high)))
        return self.rng.uniform(variable.low, variable.high)


MakeSearch = Callable[..., Search]


@pytest.fixture
def mixed() -> list[Variable]:
    """Return a variable of each kind."""
    return [
        Variable(name="lr", kind=Kind.FLOAT, low=1e-5, high=1.0, log=True),
        Variable(name="units", kind=Kind.INT, low=1, high=8),
        Variable(name="optimizer", kind=Kind.ENUM, options=("sgd", "adam")),
        Variable(name="X", kind=Kind.FLOAT, size=2, low=0.0, high=1.0),
    ]


@pytest.fixture
def make_search(tmp_path: Path, mixed: list[Variable]) -> MakeSearch:
    """Return a function that creates a search, by default with the variables ``mixed``."""

    def make(variables: Sequence[Variable] | None = None, **fields: Any) -> Search:
        return Search(tmp_path, mixed if variables is None else variables, **fields)

    return make
