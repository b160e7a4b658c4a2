"""Measure searches that pause trials at rungs, in trial seconds, on a simulated clock.

    python benchmarks/search_fidelity.py [--seeds 5] [--curves DIR] [--json FILE]

The trainings are real: ``fidelity_curves.py`` trained each point of a grid of 1080 for 81 epochs
on five tasks. The searches then read these curves. Four trials run at the same time. An epoch takes
the time that it took, in units of a mean epoch; each start of a job, also of a resumed one, takes
one such unit. All methods search the same grid, with its indices as integers:

- ``plain``: the default chooser, 81 epochs for each trial.
- ``rungs``: the default chooser with ``fidelity { min: 3 max: 81 reduction_factor: 3 }``.
- ``rungs-27``: the same with ``min: 27``.
- ``asha``: the same as ``rungs``, but trials continue only if their early values are good.
- ``halving``: the default chooser with Optuna's SuccessiveHalvingPruner, which cannot resume.
- ``tpe``, ``tpe-halving``, ``tpe-hyperband``: Optuna's TPESampler, with its pruners.
- ``random-rungs``: random points with rungs.

A method reaches a goal when a trial of 81 epochs has such a loss: the best 1 % of the grid, or the
best 0.3 %.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import optuna
from fidelity_curves import EPOCHS, GRIDS, TASKS, Table, table
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from spearmint.choosers import make_chooser
from spearmint.choosers.rungs import RUNGS
from spearmint.fidelity import Climber, Fidelity, goal_of, next_to_resume
from spearmint.store.pausing import stored_rungs

WORKERS, START_S, TRAININGS = 4, 1.0, 45
SECONDS = TRAININGS * (EPOCHS + START_S)
LOW = {"rungs-27": 27}  # the lowest rung of other methods is 3
GOALS = {"1 %": 0.01, "0.3 %": 0.003}


def chooser(seed: int) -> BaseSampler:
    """Return the default chooser."""
    return make_chooser("GPEIOptChooser", {}, seed=seed)


def halving() -> BasePruner:
    """Return Optuna's asynchronous successive halving, with the rungs of this benchmark."""
    return SuccessiveHalvingPruner(min_resource=3, reduction_factor=3)


def hyperband() -> BasePruner:
    """Return Optuna's Hyperband, with the same minimum, maximum and factor."""
    return HyperbandPruner(min_resource=3, max_resource=EPOCHS, reduction_factor=3)


def tpe(seed: int) -> BaseSampler:
    """Return Optuna's TPE, told that trials run at the same time."""
    return TPESampler(seed=seed, constant_liar=True)


METHODS: dict[str, tuple[Callable[[int], BaseSampler], Callable[[], BasePruner] | None]] = {
    "plain": (chooser, NopPruner),
    "rungs": (chooser, None),
    "asha": (chooser, None),
    "rungs-27": (chooser, None),
    "halving": (chooser, halving),
    "tpe": (tpe, NopPruner),
    "tpe-halving": (tpe, halving),
    "tpe-hyperband": (tpe, hyperband),
    "random-rungs": (lambda seed: RandomSampler(seed=seed), None),
}


@dataclass
class Simulation:
    """One search on a simulated clock; ``found`` has trial seconds and loss of full trainings."""

    task: str
    curves: Table
    study: optuna.Study
    fidelity: Fidelity
    goal_of: Callable[..., int] = goal_of
    found: list[tuple[float, float]] = field(default_factory=list)
    climbers: dict[int, Climber] = field(default_factory=dict)
    params: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def run(self, *, pauses: bool) -> None:
        """Run jobs on all workers until the trial seconds are spent."""
        parts = self._part if pauses else self._whole
        clock = [(0.0, worker, iter(())) for worker in range(WORKERS)]
        while WORKERS * clock[0][0] < SECONDS:
            now, worker, part = clock[0]
            took = next(part, None)
            if took is None:
                part = parts(now)
                took = next(part)
            heapq.heapreplace(clock, (now + took, worker, part))

    def _curve(self, number: int) -> tuple[np.ndarray, float]:
        place = self.params[number]
        return self.curves.losses[place], float(self.curves.seconds[place[1], place[2]])

    def _ask(self) -> optuna.Trial:
        grid = GRIDS[self.task]
        space = {
            name: optuna.distributions.IntDistribution(0, len(values) - 1)
            for name, values in grid.items()
        }
        trial = self.study.ask(space)
        self.params[trial.number] = tuple(trial.params[name] for name in grid)
        return trial

    def _whole(self, now: float) -> Iterator[float]:
        """Yield the seconds of each epoch of a new trial, until it ends or is pruned."""
        trial = self._ask()
        losses, epoch_s = self._curve(trial.number)
        now += START_S
        yield START_S
        for epoch in range(1, EPOCHS + 1):
            now += epoch_s
            yield epoch_s
            trial.report(losses[epoch - 1], epoch)
            if trial.should_prune():
                self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                return
        self.study.tell(trial, losses[-1])
        self.found.append((WORKERS * now, float(losses[-1])))

    def _part(self, now: float) -> Iterator[float]:
        """Yield the seconds of the next part: of a paused trial, or else of a new one."""
        number = next_to_resume(self.climbers, self.fidelity)
        if number is None:
            number = self._ask().number
            self.climbers[number] = Climber((), is_paused=False)
        climber = self.climbers[number]
        known = climber.losses
        self._store(number, replace(climber, is_paused=False))
        before, until = self.fidelity.steps(len(known))
        losses, epoch_s = self._curve(number)
        took = START_S + (until - before) * epoch_s
        yield took
        is_last = self.fidelity.is_last(len(known))
        climber = Climber((*known, float(losses[until - 1])), not is_last, climber.goal)
        others = [self.climbers[i] for i in sorted(self.climbers) if i != number]
        reached = [each for each in others if each.losses]
        climber = replace(climber, goal=self.goal_of(climber, reached, self.fidelity))
        if is_last:
            self.study.tell(number, losses[-1])
            self.climbers[number] = climber
            self.found.append((WORKERS * (now + took), float(losses[-1])))
        else:
            self._store(number, climber)

    def _store(self, number: int, climber: Climber) -> None:
        self.climbers[number] = climber
        if climber.losses:
            stored = stored_rungs(climber.losses, 0.0, is_paused=climber.is_paused)
            trial_id = self.study._storage.get_trial_id_from_study_id_trial_number(
                self.study._study_id, number
            )
            self.study._storage.set_trial_user_attr(trial_id, RUNGS, stored)


def search(task: str, method: str, seed: int, folder: Path) -> list[tuple[float, float]]:
    """Return trial seconds and loss of each full training of a search."""
    sampler, pruner = METHODS[method]
    study = optuna.create_study(sampler=sampler(seed), pruner=pruner() if pruner else None)
    fidelity = Fidelity(low=LOW.get(method, 3), high=EPOCHS, reduction=3)
    simulation = Simulation(task, table(task, folder), study, fidelity)
    with contextlib.ExitStack() as stack:
        if method == "asha":
            simulation.goal_of = lambda *trials: 0
            for module in ("fidelity", "choosers.rungs"):
                stack.enter_context(patch(f"spearmint.{module}.lowest_trusted", lambda *known: 0))
        simulation.run(pauses=pruner is None)
    return sorted(simulation.found)


def seconds_to(found: list[tuple[float, float]], goal: float) -> float:
    """Return the trial seconds after which a loss was at most ``goal``; infinity if never."""
    return min((seconds for seconds, loss in found if loss <= goal), default=np.inf)


def rank_after(found: list[tuple[float, float]], grid: np.ndarray, share: float) -> float:
    """Return the share of the grid, in %, that is better than the best loss found.

    Args:
        share: After this share of the trial seconds.
    """
    best = min((loss for seconds, loss in found if seconds <= share * SECONDS), default=np.inf)
    return 100.0 * float((grid < best).mean())


def main() -> None:
    """Print a row for each task and method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=int, default=5, help="Number of searches of each kind. Default: 5.")
    add("--curves", type=Path, default=Path("build/fidelity"), help="Directory of the curves.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON; read known ones.")
    add("--task", action="append", choices=TASKS, help="Only this task. Repeatable.")
    add("--method", action="append", choices=METHODS, help="Only this method. Repeatable.")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    known: dict[str, list] = {}
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text())["runs"]
    for task in options.task or TASKS:
        for method in options.method or METHODS:
            for seed in range(1, options.seeds + 1):
                key = f"{task}/{method}/{seed}"
                if key not in known:
                    began = time.process_time()
                    known[key] = search(task, method, seed, options.curves)
                    print(f"{key}: {time.process_time() - began:.0f} s of CPU", flush=True)
                if options.json:
                    about = {"python": platform.python_version(), "optuna": optuna.__version__}
                    options.json.write_text(json.dumps({"about": about, "runs": known}) + "\n")
    print_table(known, options.curves, options.seeds)


def print_table(known: dict[str, list], folder: Path, seeds: int) -> None:
    """Print the median trial seconds to each goal, and the ranks after half and all of the time."""
    full = EPOCHS + START_S
    heads = [*GOALS, "% better, half", "% better, all", "trainings"]
    print(f"\n{'task':<15}{'method':<15}" + "".join(f"{head:>16}" for head in heads))
    for task in TASKS:
        grid = table(task, folder).losses[..., -1].ravel()
        for method in METHODS:
            runs = [known[k] for i in range(1, seeds + 1) if (k := f"{task}/{method}/{i}") in known]
            if not runs:
                continue
            cells = []
            for share in GOALS.values():
                goal = np.sort(grid)[int(share * len(grid)) - 1]
                times = [seconds_to(run, goal) / full for run in runs]
                cells.append(
                    f"{statistics.median(times):.1f} ({np.isfinite(times).sum()}/{len(runs)})"
                )
            for share in (0.5, 1.0):
                cells.append(f"{np.mean([rank_after(run, grid, share) for run in runs]):.2f}")
            cells.append(f"{np.mean([len(run) for run in runs]):.1f}")
            print(f"{task:<15}{method:<15}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
