"""The data of a search: experiment, variables, trials and their results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from spearmint.resources import Resources


class Kind(StrEnum):
    """Type of a variable, by its name in config.pb."""

    FLOAT = "FLOAT"
    INT = "INT"
    ENUM = "ENUM"


class Language(StrEnum):
    """What a trial runs: ``main(job_id, params)`` of a Python module, or an executable file."""

    PYTHON = "PYTHON"
    SHELL = "SHELL"


Value = float | int | str
Params = Mapping[str, tuple[Value, ...]]
"""Values of a trial by variable name, always ``size`` of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One block ``variable`` of config.pb.

    Attributes:
        low, high: Bounds, both inclusive; 0 for ENUM.
        options: Choices of an ENUM, in the order of the file; empty otherwise.
        log: Search on a logarithmic scale.
    """

    name: str
    kind: Kind
    size: int = 1
    low: float = 0.0
    high: float = 0.0
    options: tuple[str, ...] = ()
    log: bool = False

    def elements(self) -> tuple[str, ...]:
        """Return the name of each element: ``lr``, or ``X[0]``, ``X[1]`` when size > 1."""
        if self.size == 1:
            return (self.name,)
        return tuple(f"{self.name}[{i}]" for i in range(self.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A config.pb, checked.

    Attributes:
        path: The config file; everything of the search lives in its directory.
        seed_points: Points to evaluate first; each may leave variables out.
        trial_timeout_s: Seconds a trial may run; None for no limit.
        regions: Regions of the config, each with a search of its own; mostly none.
        region: Which of them this is; empty for the whole, or where there are none.
        pruner: Name of what ends trials early by their reports; empty for nothing.
        pruner_args: Its arguments, ``k=v,k=v``.
        warm_start: Points of finished regions that a region tries first.
        resources: What each trial needs of a queue.
    """

    path: Path
    name: str
    language: Language
    variables: tuple[Variable, ...]
    maximize: bool = False
    seed_points: tuple[Params, ...] = ()
    max_retries: int = 1
    trial_timeout_s: float | None = None
    regions: tuple[str, ...] = ()
    region: str = ""
    pruner: str = ""
    pruner_args: str = ""
    warm_start: int = 0
    resources: Resources = field(default_factory=Resources)

    @property
    def directory(self) -> Path:
        """The directory of config.pb."""
        return self.path.parent

    @property
    def study_name(self) -> str:
        """Name of its Optuna study: ``NAME``, or ``NAME@REGION``."""
        return f"{self.name}@{self.region}" if self.region else self.name

    def searches(self) -> tuple[Experiment, ...]:
        """Return one experiment a region; only itself where there are none."""
        if not self.regions:
            return (self,)
        return tuple(replace(self, region=region) for region in self.regions)


class TrialState(StrEnum):
    """State of a trial."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One point of the search and what became of it.

    Attributes:
        id: Job id, counted from 1: what ``main`` receives and files are named after.
        value: What ``main`` returned; None unless complete.
        reason: Why it broke, in one line; empty unless broken.
        tail: Last lines of a broken trial's output.
        seconds: Duration of its last job; None while it runs.
        lost: How many of its jobs vanished without a result.
        reports: Values reported on the way, by step.
        region: Region of its search; empty where there are none.
    """

    id: int
    state: TrialState
    params: Params
    region: str = ""
    value: float | None = None
    reason: str = ""
    tail: str = ""
    seconds: float | None = None
    lost: int = 0
    reports: Mapping[int, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """For people: ``trial 7``, or ``us trial 7``."""
        return f"{self.region} trial {self.id}" if self.region else f"trial {self.id}"

    def to_json(self) -> dict[str, Any]:
        """Return the trial as data for ``--json``; with its region where there are regions."""
        region = {"region": self.region} if self.region else {}
        return {
            **region,
            "id": self.id,
            "state": str(self.state),
            "value": json_number(self.value),
            "params": {name: list(values) for name, values in self.params.items()},
            "seconds": self.seconds,
            "reason": self.reason,
            "tail": self.tail,
            "lost": self.lost,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a job left behind: a value, or the reason there is none."""

    value: float | None
    reason: str = ""
    seconds: float | None = None
    reports: Mapping[int, float] = field(default_factory=dict)


def json_number(value: float | None) -> float | str | None:
    """Return ``value``; an infinite one as ``inf``, since JSON has no number for it."""
    return value if value is None or math.isfinite(value) else str(value)


def best_trial(trials: Sequence[Trial], *, maximize: bool) -> Trial | None:
    """Return the complete trial with the best value, the earliest of equals; None if none is."""
    ranked = ranking(trials, maximize=maximize)
    return ranked[0] if ranked else None


def is_better(value: float, than: float, *, maximize: bool) -> bool:
    """Tell whether ``value`` beats ``than``."""
    return value > than if maximize else value < than


def ranking(trials: Sequence[Trial], *, maximize: bool) -> list[Trial]:
    """Return the complete trials, best first; an infinite value of either sign is the worst."""
    sign = -1.0 if maximize else 1.0
    done = [(trial.value, trial) for trial in trials if trial.value is not None]

    def rank(pair: tuple[float, Trial]) -> tuple[float, int]:
        value, trial = pair
        return sign * value if math.isfinite(value) else math.inf, trial.id

    return [trial for _, trial in sorted(done, key=rank)]
