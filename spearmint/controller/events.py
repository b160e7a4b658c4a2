"""Who is told what happens in a search, and the figures that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spearmint.model import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Figures of one study at one moment; ``seconds`` of all trials that have ended."""

    region: str = ""
    complete: int = 0
    pruned: int = 0
    broken: int = 0
    running: int = 0
    queued: int = 0
    seconds: float = 0.0
    best: Trial | None = None

    @property
    def finished(self) -> int:
        """Trials that gave a value or were pruned."""
        return self.complete + self.pruned


class Watcher(Protocol):
    """Is told what happens; shows it."""

    def submitted(self, trial: Trial, progress: Progress) -> None:
        """A job of ``trial`` was started or found running."""

    def started(self, trial: Trial, progress: Progress) -> None:
        """A queued job of ``trial`` runs now."""

    def ended(self, trial: Trial, progress: Progress) -> None:
        """A trial is complete, pruned or broken."""

    def note(self, text: str) -> None:
        """Something else that people should know."""
