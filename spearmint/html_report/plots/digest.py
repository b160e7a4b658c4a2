"""The data of a report: the trials of a search, counted and ranked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from spearmint.layout import Layout
from spearmint.model import Experiment, Trial, TrialState, Value, Variable, pareto_front, ranking
from spearmint.store.recommending import Recommendation


@dataclass(frozen=True, slots=True)
class Element:
    """One dimension of the search space, such as ``lr``, or ``X[1]`` of the variable ``X``."""

    name: str
    variable: Variable
    index: int

    def of(self, trial: Trial) -> Value | None:
        """Return the trial's value in this dimension; None if the variable is inactive."""
        values = trial.params.get(self.variable.name)
        return None if values is None else values[self.index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The state of a search at one moment.

    Attributes:
        ranked: Complete trials, best first.
        finite: Complete trials with a finite value, which a plot can show, best first.
        started: First start of a trial, in local time.
        ended: Last end of a trial, in local time.
        layout: Files of the search; None if they are elsewhere.
        recommendation: The trial to use, with what a model expects of it; None if not known.
        strategy: Lines on how the chooser works.
    """

    experiment: Experiment
    trials: tuple[Trial, ...]
    ranked: tuple[Trial, ...]
    finite: tuple[Trial, ...]
    started: datetime | None
    ended: datetime | None
    layout: Layout | None = None
    recommendation: Recommendation | None = None
    strategy: tuple[str, ...] = ()

    @staticmethod
    def of(
        experiment: Experiment,
        trials: Iterable[Trial],
        *,
        started: datetime | None = None,
        ended: datetime | None = None,
        layout: Layout | None = None,
        recommendation: Recommendation | None = None,
        strategy: Iterable[str] = (),
    ) -> Digest:
        """Count and rank ``trials``."""
        known = tuple(trials)
        ranked = tuple(ranking(known, maximize=experiment.maximize))
        return Digest(
            experiment=experiment,
            trials=known,
            ranked=ranked,
            finite=tuple(trial for trial in ranked if math.isfinite(number(trial))),
            started=started,
            ended=ended,
            layout=layout,
            recommendation=recommendation,
            strategy=tuple(strategy),
        )

    @property
    def best(self) -> Trial | None:
        """The best feasible trial; None if no trial is complete and feasible."""
        return self.ranked[0] if self.ranked and self.ranked[0].is_feasible else None

    @property
    def front(self) -> list[Trial]:
        """The Pareto front of several objectives; empty with one."""
        return pareto_front(self.trials)

    @property
    def constraints(self) -> list[str]:
        """Names of the constraints."""
        return [constraint.name for constraint in self.experiment.constraints]

    @property
    def recommended(self) -> Trial | None:
        """The trial to use: the best one, or under noise the one with the best expected value."""
        return self.recommendation.trial if self.recommendation else self.best

    @property
    def seconds(self) -> float:
        """Seconds spent in trials, including failed (broken) trials."""
        return math.fsum(trial.seconds or trial.earlier_s for trial in self.trials)

    def in_state(self, state: TrialState) -> list[Trial]:
        """Return the trials in ``state``, by id."""
        return [trial for trial in self.trials if trial.state is state]

    def elements(self) -> list[Element]:
        """Return all dimensions, in the order of config.pb."""
        return [
            Element(name, variable, index)
            for variable in self.experiment.variables
            for index, name in enumerate(variable.elements())
        ]


def number(trial: Trial) -> float:
    """Return the value of a complete trial."""
    if trial.value is None:
        raise ValueError(f"trial {trial.id} has no value")
    return float(trial.value)


def nothing_complete(digest: Digest) -> str:
    """Return why no plot of values can be drawn; empty if it can."""
    if digest.finite:
        return ""
    if digest.experiment.has_front:
        return "There are several objectives."
    if digest.ranked:
        return "No trial has a finite value yet."
    return "No trial is complete yet."
