"""A difference between the database of a search and everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Problem:
    """A difference, and how to repair it.

    Attributes:
        what: What was found, in one line.
        fix: What the repair does, or what the user can do.
        repair: Repairs it; None if only the user can.
        is_repaired: Whether it was repaired.
    """

    what: str
    fix: str
    repair: Callable[[], object] | None = None
    is_repaired: bool = False

    @property
    def can_repair(self) -> bool:
        """Whether ``--fix`` repairs it."""
        return self.repair is not None
