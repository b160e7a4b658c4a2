"""What the functions of this package need of a search and of its trials."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Proposed(Protocol):
    """A trial to evaluate."""

    @property
    def id(self) -> int:
        """Number of the trial."""

    @property
    def params(self) -> Any:
        """Its point."""


class Told(Protocol):
    """What stores the results of trials."""

    @property
    def prunes(self) -> bool:
        """Whether an intermediate value can stop a trial."""

    def tell(
        self,
        trial: Any,
        value: float | Mapping[str, float] | None,
        *,
        reason: str = "",
        reports: Mapping[int, float] | None = None,
    ) -> None:
        """Store a result, and the intermediate values ``reports`` by step."""

    def one_transaction(self) -> AbstractContextManager[None]:
        """Store everything that the block tells and reports at its end."""

    def report(self, trial: Any, step: int, value: float) -> bool:
        """Store an intermediate value; return whether to stop."""

    def report_many(self, trial: Any, values: Mapping[int, float]) -> bool:
        """Store intermediate values by step."""

    def prune(self, trial: Any) -> None:
        """Store that a trial was stopped."""


class AskTell(Told, Protocol):
    """What a search must offer; ``spearmint.Search`` does."""

    @property
    def pending(self) -> list[Any]:
        """Trials without a result."""

    @property
    def trials(self) -> list[Any]:
        """All trials."""

    def ask_many(self, count: int) -> list[Any]:
        """Return new trials."""


class JobTrial(Protocol):
    """One of the trials that ``main_batch`` receives from ``spearmint``."""

    @property
    def id(self) -> int:
        """Number of the trial."""

    @property
    def params(self) -> Any:
        """Its point."""

    @property
    def files(self) -> Path:
        """Directory for its files."""

    @property
    def has_ended(self) -> bool:
        """Whether it needs no more training."""

    def steps(self, last: int, after: int = 0) -> range:
        """Return the epochs to train now."""

    def report(self, step: int, value: float) -> bool:
        """Store an intermediate value; return whether to stop."""

    def tell(self, value: object) -> None:
        """Store the result."""

    def fail(self, reason: str | BaseException) -> None:
        """Store that it failed."""
