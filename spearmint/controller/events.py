"""Events of a search, their observers and their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spearmint.model import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCounts:
    """Counts of one study; ``seconds`` is the sum over all ended trials.

    With several objectives it has a ``front`` instead of a ``best`` trial.
    """

    region: str = ""
    complete: int = 0
    pruned: int = 0
    broken: int = 0
    running: int = 0
    queued: int = 0
    paused: int = 0
    seconds: float = 0.0
    best: Trial | None = None
    front: tuple[Trial, ...] = ()

    @property
    def finished(self) -> int:
        """Complete, pruned and paused trials."""
        return self.complete + self.pruned + self.paused


class SearchObserver(Protocol):
    """Receives the events of a search, for example to print them."""

    def submitted(self, trial: Trial, counts: StudyCounts) -> None:
        """A job of ``trial`` was started or adopted."""

    def started(self, trial: Trial, counts: StudyCounts) -> None:
        """A queued job of ``trial`` started."""

    def ended(self, trial: Trial, counts: StudyCounts) -> None:
        """``trial`` is complete, pruned, broken, or paused at a rung."""

    def note(self, text: str) -> None:
        """Any other message for the user."""
