"""Observers that print a search: a live bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from spearmint.controller.events import StudyCounts
from spearmint.formatting import (
    format_params,
    format_value,
    infeasible_text,
    objectives_text,
    plain,
)
from spearmint.model import Trial, TrialState
from starmint.streams import allow_any_text

_UNLIMITED = 10_000


def trial_line(trial: Trial, counts: StudyCounts) -> str:
    """Return one line about a trial that ended."""
    seconds = f" {trial.seconds:.1f} s" if trial.seconds is not None else ""
    params = format_params(trial.params)
    if trial.state is TrialState.PRUNED:
        return f"{trial.label}: pruned{_last_report(trial)}{seconds}  {params}"
    if trial.state is TrialState.PAUSED:
        at = f"paused at rung {len(trial.rungs)} with {format_value(trial.rungs[-1])}"
        return f"{trial.label}: {at}{seconds}  {params}"
    if trial.out_of_memory:
        return f"{trial.label}: infeasible: {plain(trial.reason)}{seconds}"
    if trial.objectives:
        outside = f" {infeasible_text(trial)}" if trial.excess else ""
        mark = "  <- Pareto front" if trial in counts.front else ""
        return f"{trial.label}: {objectives_text(trial)}{outside}{seconds}  {params}{mark}"
    if trial.state is not TrialState.COMPLETE or trial.value is None:
        return f"{trial.label}: broken: {plain(trial.reason)}{seconds}  {params}"
    best = counts.best
    is_best = best is not None and best.id == trial.id
    mark = "  <- best" if is_best else ""
    outside = f" {infeasible_text(trial)}" if trial.excess else ""
    return f"{trial.label}: {format_value(trial.value)}{outside}{seconds}  {params}{mark}"


def _last_report(trial: Trial) -> str:
    if not trial.reports:
        return ""
    step = max(trial.reports)
    return f" at step {step} with {format_value(float(trial.reports[step]))}"


def bar_text(figures: Mapping[str, StudyCounts]) -> str:
    """Return the text of the bar, from the counts of each region."""
    running = sum(counts.running for counts in figures.values())
    words = [f"{running} running"]
    for state in ("queued", "paused", "pruned", "broken"):
        number = sum(getattr(counts, state) for counts in figures.values())
        words += [f"{number} {state}"] if number else []
    if len(figures) > 1:
        words.insert(0, f"{len(figures)} regions")
    else:
        best, front = next(iter(figures.values())).best, next(iter(figures.values())).front
        if front:
            words.insert(0, f"Pareto front of {len(front)}")
        if best is not None and best.value is not None:
            words.insert(0, f"best {format_value(best.value)} (trial {best.id})")
    return ", ".join(words)


class PlainObserver:
    """Prints a line for each trial that ends; for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def submitted(self, trial: Trial, counts: StudyCounts) -> None:
        """Print nothing; only ended trials are printed."""

    def started(self, trial: Trial, counts: StudyCounts) -> None:
        """Print nothing."""

    def ended(self, trial: Trial, counts: StudyCounts) -> None:
        """Print the trial."""
        self.note(trial_line(trial, counts))

    def note(self, text: str) -> None:
        """Print ``text`` without markup."""
        self._console.print(Text(text), soft_wrap=True)

    def __enter__(self) -> PlainObserver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class LiveObserver(PlainObserver):
    """Prints the same lines above a bar with the best value and the running trials."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("searching", total=total)
        self._figures: dict[str, StudyCounts] = {}

    def submitted(self, trial: Trial, counts: StudyCounts) -> None:
        """Move the bar."""
        self._update(counts)

    def started(self, trial: Trial, counts: StudyCounts) -> None:
        """Move the bar."""
        self._update(counts)

    def ended(self, trial: Trial, counts: StudyCounts) -> None:
        """Print the trial and move the bar."""
        super().ended(trial, counts)
        self._update(counts)

    def _update(self, counts: StudyCounts) -> None:
        self._figures[counts.region] = counts
        finished = sum(study.finished for study in self._figures.values())
        self._bar.update(self._task, completed=finished, description=bar_text(self._figures))

    def __enter__(self) -> LiveObserver:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


class _Console(Console):
    """A console that raises BrokenPipeError, instead of ending the process, if nobody reads it."""

    def on_broken_pipe(self) -> None:
        """Discard what is not written yet, and raise."""
        discard_output()
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def discard_output() -> None:
    """Discard unwritten standard output, whose flush at the exit of Python would fail."""
    with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def make_console(*, stderr: bool = False) -> Console:
    """Return a console of the terminal width, or without line breaks and bars elsewhere."""
    allow_any_text(sys.stderr if stderr else sys.stdout)
    console = _Console(highlight=False, stderr=stderr)
    if console.is_terminal and not console.is_jupyter:
        return console
    return _Console(
        highlight=False,
        stderr=stderr,
        width=_UNLIMITED,
        force_terminal=False,
        force_jupyter=False,  # a line is a line, not a block of HTML
    )


def make_observer(console: Console, total: int) -> PlainObserver:
    """Return the live observer on a terminal, the plain one elsewhere."""
    return LiveObserver(console, total) if console.is_terminal else PlainObserver(console)
