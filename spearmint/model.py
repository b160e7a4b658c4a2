"""The data of a search: experiment, variables, trials and their results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from spearmint.conditions import Condition
from spearmint.fidelity import Fidelity
from spearmint.linear import LinearConstraint, texts_of
from spearmint.outputs import Constraint, Objective
from spearmint.pareto import Losses, dominates, front
from spearmint.resources import Resources


class Kind(StrEnum):
    """Type of a variable, by its name in config.pb."""

    FLOAT = "FLOAT"
    INT = "INT"
    ENUM = "ENUM"


class Language(StrEnum):
    """Language of the code: a function of a Python module or of a .m file, or an executable."""

    PYTHON = "PYTHON"
    SHELL = "SHELL"
    MATLAB = "MATLAB"


Value = float | int | str
Params = Mapping[str, tuple[Value, ...]]
"""Values of a trial by variable name, ``size`` values each; without its inactive variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One block ``variable`` of config.pb.

    Attributes:
        low, high: Bounds, both inclusive; 0 for ENUM.
        options: Choices of an ENUM, in the order of the file; empty otherwise.
        log: Search on a logarithmic scale.
        guess: Where the user expects the best value; None for no guess.
        spread: How far from ``guess`` it can be: a share of the range, on a log scale if ``log``.
        when: Conditions that must all hold for the variable to be active; empty if it always is.
    """

    name: str
    kind: Kind
    size: int = 1
    low: float = 0.0
    high: float = 0.0
    options: tuple[str, ...] = ()
    log: bool = False
    guess: float | None = None
    spread: float = 0.0
    when: tuple[Condition, ...] = ()

    def elements(self) -> tuple[str, ...]:
        """Return the name of each element: ``lr``, or ``X[0]``, ``X[1]`` when size > 1."""
        if self.size == 1:
            return (self.name,)
        return tuple(f"{self.name}[{i}]" for i in range(self.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A config.pb, checked.

    Attributes:
        path: The config file; all files of the search are in its directory.
        maximize: Whether larger values of the only objective are better.
        objectives: The named objectives; empty for one without a name.
        constraints: Limits of values that each trial returns in addition to its objective.
        linear: Linear constraints of variables, which all proposals meet.
        seed_points: Points to evaluate first; each can omit variables.
        trial_timeout_s: Timeout of a trial in seconds; None for no limit.
        regions: Regions, each with a separate search; empty for a search without regions.
        region: The region of this search; empty for all, or without regions.
        pruner: Name of the pruner; empty for none.
        pruner_args: Arguments of the pruner, ``k=v,k=v``.
        launcher: ``torchrun`` if it starts the processes of each trial; empty for one process.
        processes: Number of these processes; None for one for each GPU of the trial.
        batch: Most trials of one job; 1 for a job for each trial.
        warm_start: Number of points of finished regions that a new region tries first.
        fidelity: The rungs at which trials pause; None for trials without parts.
        learn_from: Earlier searches to learn from: directories, files or URLs of storages.
        resources: Resources that each trial requests from a queue.
    """

    path: Path
    name: str
    language: Language
    variables: tuple[Variable, ...]
    maximize: bool = False
    objectives: tuple[Objective, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    linear: tuple[LinearConstraint, ...] = ()
    seed_points: tuple[Params, ...] = ()
    max_retries: int = 1
    trial_timeout_s: float | None = None
    regions: tuple[str, ...] = ()
    region: str = ""
    pruner: str = ""
    pruner_args: str = ""
    launcher: str = ""
    processes: int | None = None
    batch: int = 1
    warm_start: int = 0
    fidelity: Fidelity | None = None
    learn_from: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)

    @property
    def directory(self) -> Path:
        """The directory of config.pb."""
        return self.path.parent

    @property
    def processes_of_trial(self) -> int | None:
        """Number of processes that a launcher starts for each trial; None without one."""
        if not self.launcher:
            return None
        return self.processes or max(1, int(self.resources.gpus))

    @property
    def has_front(self) -> bool:
        """Whether there are several objectives, so that no trial is the best."""
        return len(self.objectives) > 1

    @property
    def study_name(self) -> str:
        """Name of its Optuna study: ``NAME``, or ``NAME@REGION``."""
        return f"{self.name}@{self.region}" if self.region else self.name

    @property
    def require(self) -> list[str]:
        """The linear constraints as the user wrote them."""
        return texts_of(self.linear)

    def violations(self, trial: Trial) -> list[str]:
        """Return the linear constraints that ``trial`` violates, as the user wrote them.

        Only trials that others proposed, or of before the constraint, violate any.
        """
        values = {
            key: value
            for variable in self.variables
            if variable.name in trial.params
            for key, value in zip(variable.elements(), trial.params[variable.name], strict=True)
        }
        return texts_of(tuple(each for each in self.linear if not each.holds(values)))

    def searches(self) -> tuple[Experiment, ...]:
        """Return one experiment per region; only this one without regions."""
        if not self.regions:
            return (self,)
        return tuple(replace(self, region=region) for region in self.regions)


class TrialState(StrEnum):
    """State of a trial."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    BROKEN = "broken"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One point of the search and its result.

    Attributes:
        id: Number from 1, in the names of its files; ``main`` receives it as ``job_id``.
        value: Objective that ``main`` returned; None unless complete, and with several objectives.
        reason: Why it failed, in one line; empty unless broken.
        out_of_memory: Whether it is broken because it ran out of GPU memory.
        tail: Last lines of the output of a failed trial.
        seconds: Duration of its last job, and of those of earlier rungs; None while it runs.
        rungs: Values at the rungs that it passed; empty without a block ``fidelity``.
        earlier_s: Seconds of the jobs up to the last of these rungs.
        goal: It continues to this number of rungs, whatever its values are.
        part_s: Seconds of the part up to each of these rungs; empty if they were not stored.
        lost: Number of its jobs that disappeared without a result.
        alone: Whether its later jobs have no other trials: one of several trials failed as a whole.
        reports: Intermediate values, by step.
        region: Region of its search; empty without regions.
        objectives: Values by name of several objectives; empty unless complete.
        losses: The same in order, each to be minimised.
        constraints: Values with limits that ``main`` returned, by name.
        excess: How far they are outside, in units of the limit, by name; only those outside.
        tags, notes: What users said about it; empty where they are not read.
    """

    id: int
    state: TrialState
    params: Params
    region: str = ""
    value: float | None = None
    reason: str = ""
    out_of_memory: bool = False
    tail: str = ""
    seconds: float | None = None
    rungs: tuple[float, ...] = ()
    earlier_s: float = 0.0
    goal: int = 0
    part_s: tuple[float, ...] = ()
    lost: int = 0
    alone: bool = False
    reports: Mapping[int, float] = field(default_factory=dict)
    objectives: Mapping[str, float] = field(default_factory=dict)
    losses: Losses = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    excess: Mapping[str, float] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether no constraint is violated; True without constraints."""
        return not self.excess

    @property
    def part_seconds(self) -> tuple[float, ...]:
        """Seconds of each part that ended with a value, also of the last part."""
        if not self.part_s or self.seconds is None or self.state is not TrialState.COMPLETE:
            return self.part_s
        return (*self.part_s, self.seconds - self.earlier_s)

    @property
    def last_s(self) -> float:
        """Seconds of its last job, without those of earlier rungs; 0 while they are unknown."""
        return (self.seconds or self.earlier_s) - self.earlier_s

    @property
    def label(self) -> str:
        """Name in messages: ``trial 7``, or ``us trial 7`` in a region."""
        return f"{self.region} trial {self.id}" if self.region else f"trial {self.id}"

    def to_json(self) -> dict[str, Any]:
        """Return the trial as data for ``--json``, with its region and constraints if any."""
        region = {"region": self.region} if self.region else {}
        memory = {"out_of_gpu_memory": True} if self.out_of_memory else {}
        return {
            **region,
            **memory,
            **({"rungs": list(map(_json_known, self.rungs))} if self.rungs else {}),
            **({"part_seconds": list(self.part_seconds)} if self.part_s else {}),
            "id": self.id,
            "state": str(self.state),
            "value": json_number(self.value),
            **self._outputs_json(),
            "params": {name: list(values) for name, values in self.params.items()},
            "seconds": self.seconds,
            "reason": self.reason,
            "tail": self.tail,
            "lost": self.lost,
            "tags": list(self.tags),
            "notes": list(self.notes),
        }

    def _outputs_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.objectives:
            found["values"] = {name: json_number(v) for name, v in self.objectives.items()}
        if self.constraints:
            found["constraints"] = {name: json_number(v) for name, v in self.constraints.items()}
            found["feasible"] = self.is_feasible
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of a job: a value, or the reason why it failed.

    With several objectives, ``value`` is the first of ``objectives``. ``out_of_memory`` is whether
    it ran out of GPU memory, and ``together`` whether the failure can be that of another trial in
    the same job.
    """

    value: float | None
    reason: str = ""
    out_of_memory: bool = False
    together: bool = False
    seconds: float | None = None
    reports: Mapping[int, float] = field(default_factory=dict)
    objectives: Mapping[str, float] = field(default_factory=dict)
    constraints: Mapping[str, float] = field(default_factory=dict)


def json_number(value: float | None) -> float | str | None:
    """Return ``value``, or the text ``inf`` for infinity, which JSON cannot represent."""
    return value if value is None or math.isfinite(value) else str(value)


def _json_known(value: float) -> float | str | None:
    """Return ``json_number``; None for NaN, a value that is not known."""
    return None if math.isnan(value) else json_number(value)


def best_trial(trials: Sequence[Trial], *, maximize: bool) -> Trial | None:
    """Return the feasible complete trial with the best value, the first of equal ones, or None."""
    ranked = ranking(trials, maximize=maximize)
    return ranked[0] if ranked and ranked[0].is_feasible else None


def is_better(value: float, than: float, *, maximize: bool) -> bool:
    """Return whether ``value`` is better than ``than``."""
    return value > than if maximize else value < than


def ranking(trials: Sequence[Trial], *, maximize: bool) -> list[Trial]:
    """Return the complete trials, best first.

    Infinite values of both signs follow the finite ones. Infeasible trials are last, those with
    the smallest excess first.
    """
    sign = -1.0 if maximize else 1.0
    done = [(trial.value, trial) for trial in trials if trial.value is not None]

    def rank(pair: tuple[float, Trial]) -> tuple[float, float, int]:
        value, trial = pair
        excess = sum(trial.excess.values())
        return excess, sign * value if math.isfinite(value) else math.inf, trial.id

    return [trial for _, trial in sorted(done, key=rank)]


def pareto_front(trials: Sequence[Trial]) -> list[Trial]:
    """Return the feasible complete trials that no other dominates, by their first objective.

    Empty with one objective.
    """
    known = [trial for trial in trials if trial.losses and trial.is_feasible]
    return [known[i] for i in front([trial.losses for trial in known])]


def with_new(front: Sequence[Trial], trial: Trial) -> list[Trial]:
    """Return a Pareto front with ``trial``, which ended last, if it is on it; in linear time."""
    mine = trial.losses
    is_candidate = trial.is_feasible and all(map(math.isfinite, mine))
    if not is_candidate or any(t.losses == mine or dominates(t.losses, mine) for t in front):
        return list(front)
    left = [other for other in front if not dominates(mine, other.losses)]
    return sorted([*left, trial], key=lambda other: other.losses)


def leading(trials: Sequence[Trial], *, maximize: bool) -> list[Trial]:
    """Return the complete trials for a table: the front of several objectives, or the ranking."""
    complete = [trial for trial in trials if trial.losses]
    if not complete:
        return ranking(trials, maximize=maximize)
    return pareto_front(complete) or sorted(complete, key=lambda t: (sum(t.excess.values()), t.id))
