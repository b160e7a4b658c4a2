"""Text that ``spearmint run`` prints before and after a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from spearmint.controller.events import StudyCounts
from spearmint.errors import next_command
from spearmint.formatting import format_duration
from spearmint.model import Experiment, Language, Trial, TrialState
from spearmint.run_options import RunOptions
from spearmint.store.session import Session
from spearmint.store.study import Study
from spearmint.trial.languages import shell_command, wrappers
from spearmint.view.tables import broken_lines, trial_table

_SHOWN = 5


def greet(console: Console, sessions: Sequence[Session], options: RunOptions, driver: str) -> None:
    """Print what is searched, and how."""
    experiment = sessions[0].experiment
    regions = f"{len(sessions)} regions, " if experiment.region else ""
    dimensions = sum(variable.size for variable in experiment.variables)
    pruner = f", pruner {experiment.pruner}" if experiment.pruner else ""
    rungs = f", {experiment.fidelity.describe()}" if experiment.fidelity else ""
    ahead = f", {options.queue_ahead} queued ahead" if options.queue_ahead else ""
    counted = "1 dimension" if dimensions == 1 else f"{dimensions} dimensions"
    unit = "trial" if experiment.batch == 1 else "job"
    concurrent = f"1 {unit}" if options.max_concurrent == 1 else f"{options.max_concurrent} {unit}s"
    concurrent += f" of up to {experiment.batch} trials" if experiment.batch > 1 else ""
    console.print(
        f"{experiment.name}: {regions}{counted}, chooser {options.method}, driver {driver} with "
        f"{concurrent} at a time{ahead}{pruner}{rungs}",
        markup=False,
        soft_wrap=True,
    )
    for lesson in dict.fromkeys(text for each in sessions for text in each.study.lessons):
        console.print(lesson, markup=False, soft_wrap=True)
    if experiment.language is Language.SHELL and (note := _not_executable(experiment)):
        console.print(note, markup=False, soft_wrap=True)


def _not_executable(experiment: Experiment) -> str:
    """Return which program runs a script that is not executable; empty if it is."""
    found = wrappers(experiment.language, experiment.directory, experiment.name)
    path = next(path for path in found if path.is_file())
    *program, _ = shell_command(path)
    if not program:
        return ""
    return f"{path.name} is not executable: {' '.join(program)} runs it. Or: chmod +x {path}"


def summarise(
    console: Console,
    sessions: Sequence[Session],
    options: RunOptions,
    figures: Mapping[str, StudyCounts],
) -> None:
    """Print the best trials, the cost of the search, and why trials failed."""
    experiment = sessions[0].experiment
    studies = [session.study for session in sessions]
    best = _best(studies)
    if best:
        console.print(f"\n{_headline(figures)}{_feasible_note(studies)}")
        console.print(trial_table(best, experiment.variables))
    elif highest := [trial for study in studies for trial in study.at_highest_rung()]:
        console.print(f"\n{_headline(figures)}. The best of the highest rung:")
        console.print(trial_table(highest, experiment.variables))
    seconds = sum(progress.seconds for progress in figures.values())
    if options.cost_per_hour is not None:
        cost = seconds / 3600.0 * options.cost_per_hour
        console.print(
            f"Cost: {cost:.2f} for {format_duration(seconds)} of trial time", markup=False
        )
    if experiment.pruner and _has_begun(figures) and not any(s.has_reports() for s in studies):
        console.print(
            f"The pruner {experiment.pruner} stopped no trial, because no trial reported a value. "
            "Call spearmint.report(step, value), or write lines step,value to $SPEARMINT_REPORTS.",
            markup=False,
            soft_wrap=True,
        )
    if options.verbose:
        broken = [trial for study in studies for trial in study.last(TrialState.BROKEN)]
        for line in broken_lines(broken):
            console.print(line, markup=False, soft_wrap=True)
    elif any(progress.broken for progress in figures.values()):
        console.print(
            f"Why trials failed: {next_command('status', sessions[0].layout.root)}",
            markup=False,
            soft_wrap=True,
        )


def _has_begun(figures: Mapping[str, StudyCounts]) -> bool:
    return any(
        each.finished or each.broken or each.running or each.queued for each in figures.values()
    )


def _feasible_note(studies: Sequence[Study]) -> str:
    """Return how many complete trials are feasible; empty without constraints."""
    limited, feasible = (
        sum(counted) for counted in zip(*(study.feasible() for study in studies), strict=True)
    )
    return f", {feasible or 'none'} feasible" if limited else ""


def _best(studies: Sequence[Study]) -> list[Trial]:
    """Return the best trials of one search, or the best trial of each region."""
    shown = _SHOWN if len(studies) == 1 else 1
    return [trial for study in studies for trial in study.best(shown, feasible=False)]


def _headline(figures: Mapping[str, StudyCounts]) -> str:
    def total(state: str) -> int:
        return sum(getattr(progress, state) for progress in figures.values())

    regions = f" of {len(figures)} regions" if len(figures) > 1 else ""
    paused = f"{total('paused')} paused, " if total("paused") else ""
    pruned = f"{paused}{total('pruned')} pruned, " if total("pruned") else paused
    front = sum(len(progress.front) for progress in figures.values())
    which = f"Pareto front: {front}" if front else "Best"
    complete = total("complete")
    trials = "1 complete trial" if complete == 1 else f"{complete} complete trials"
    return f"{which} of {trials}{regions} ({pruned}{total('broken')} broken)"
