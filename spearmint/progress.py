"""What people see of a search: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from spearmint.loop import Progress
from spearmint.model import Trial, TrialState, format_params, format_value

_UNLIMITED = 10_000


def trial_line(trial: Trial, progress: Progress) -> str:
    """Return one line on a trial that ended."""
    seconds = f" {trial.seconds:.1f} s" if trial.seconds is not None else ""
    params = format_params(trial.params)
    if trial.state is not TrialState.COMPLETE or trial.value is None:
        return f"trial {trial.id}: broken: {trial.reason}{seconds}  {params}"
    best = progress.best
    is_best = best is not None and best.id == trial.id
    mark = "  <- best" if is_best else ""
    return f"trial {trial.id}: {format_value(trial.value)}{seconds}  {params}{mark}"


class PlainWatcher:
    """A line for each trial that ends; for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def submitted(self, trial: Trial, progress: Progress) -> None:
        """Say nothing; the end of the trial is worth a line."""

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

    def submitted(self, trial: Trial, progress: Progress) -> None:
        """Move the bar."""
        self._update(progress)

    def ended(self, trial: Trial, progress: Progress) -> None:
        """Print the trial and move the bar."""
        super().ended(trial, progress)
        self._update(progress)

    def _update(self, progress: Progress) -> None:
        best = progress.best
        value = (
            f"best {format_value(best.value)} (trial {best.id}), "
            if best is not None and best.value is not None
            else ""
        )
        broken = f", {progress.broken} broken" if progress.broken else ""
        text = f"{value}{progress.running} running{broken}"
        self._bar.update(self._task, completed=progress.complete, description=text)

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
