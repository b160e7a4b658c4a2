"""What people see of a search: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from spearmint.controller.events import Progress
from spearmint.formatting import format_params, format_value, plain
from spearmint.model import Trial, TrialState

_UNLIMITED = 10_000


def trial_line(trial: Trial, progress: Progress) -> str:
    """Return one line on a trial that ended."""
    seconds = f" {trial.seconds:.1f} s" if trial.seconds is not None else ""
    params = format_params(trial.params)
    if trial.state is TrialState.PRUNED:
        return f"{trial.label}: pruned{_last_report(trial)}{seconds}  {params}"
    if trial.state is not TrialState.COMPLETE or trial.value is None:
        return f"{trial.label}: broken: {plain(trial.reason)}{seconds}  {params}"
    best = progress.best
    is_best = best is not None and best.id == trial.id
    mark = "  <- best" if is_best else ""
    return f"{trial.label}: {format_value(trial.value)}{seconds}  {params}{mark}"


def _last_report(trial: Trial) -> str:
    if not trial.reports:
        return ""
    step = max(trial.reports)
    return f" at step {step} with {format_value(float(trial.reports[step]))}"


def bar_text(figures: Mapping[str, Progress]) -> str:
    """Return what stands beside the bar, from the figures of each region."""
    running = sum(progress.running for progress in figures.values())
    words = [f"{running} running"]
    for state in ("queued", "pruned", "broken"):
        count = sum(getattr(progress, state) for progress in figures.values())
        words += [f"{count} {state}"] if count else []
    if len(figures) > 1:
        words.insert(0, f"{len(figures)} regions")
    else:
        best = next(iter(figures.values())).best
        if best is not None and best.value is not None:
            words.insert(0, f"best {format_value(best.value)} (trial {best.id})")
    return ", ".join(words)


class PlainWatcher:
    """A line for each trial that ends; for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def submitted(self, trial: Trial, progress: Progress) -> None:
        """Say nothing; the end of the trial is worth a line."""

    def started(self, trial: Trial, progress: Progress) -> None:
        """Say nothing either."""

    def ended(self, trial: Trial, progress: Progress) -> None:
        """Print the trial."""
        self.note(trial_line(trial, progress))

    def note(self, text: str) -> None:
        """Print ``text`` as it is."""
        self._console.print(Text(text), soft_wrap=True)

    def __enter__(self) -> PlainWatcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class LiveWatcher(PlainWatcher):
    """The same lines above a bar with the best value and what runs."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("searching", total=total)
        self._figures: dict[str, Progress] = {}

    def submitted(self, trial: Trial, progress: Progress) -> None:
        """Move the bar."""
        self._update(progress)

    def started(self, trial: Trial, progress: Progress) -> None:
        """Move the bar."""
        self._update(progress)

    def ended(self, trial: Trial, progress: Progress) -> None:
        """Print the trial and move the bar."""
        super().ended(trial, progress)
        self._update(progress)

    def _update(self, progress: Progress) -> None:
        self._figures[progress.region] = progress
        finished = sum(each.complete + each.pruned for each in self._figures.values())
        self._bar.update(self._task, completed=finished, description=bar_text(self._figures))

    def __enter__(self) -> LiveWatcher:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


def make_console() -> Console:
    """Return a console as wide as the terminal, or as wide as its lines elsewhere."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_UNLIMITED)


def make_watcher(console: Console, total: int) -> PlainWatcher:
    """Return the live watcher on a terminal, the plain one elsewhere."""
    return LiveWatcher(console, total) if console.is_terminal else PlainWatcher(console)
