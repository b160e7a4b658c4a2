"""Promote a version if it is better than the current one by more than chance explains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from spearmint.models.store import ModelStore, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a version is promoted, and why.

    Attributes:
        region: Region, or name of the search.
        version: The candidate.
        before: The version that was current; None without one.
        promotes: Whether the candidate becomes current.
        reason: Why, in one line.
    """

    region: str
    version: Version
    before: Version | None
    promotes: bool
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the decision as data."""
        return {
            "region": self.region,
            "version": self.version.number,
            "value": self.version.value,
            "before": None if self.before is None else self.before.number,
            "promoted": self.promotes,
            "reason": self.reason,
        }


def promote(
    store: ModelStore, *, maximize: bool, number: int | None = None, dry_run: bool = False
) -> Decision | None:
    """Decide about the newest version, and make it current if it is better.

    Args:
        store: The versions.
        maximize: Whether larger values of the test metric are better.
        number: Decide about this version, even if a rollback left it.
        dry_run: Decide only.

    Returns:
        The decision; None if there is no version to decide about.

    Raises:
        SpearmintError: A version does not exist, or its metrics are damaged.
    """
    with store.lock():
        if number is not None:
            candidate = store.version(number)
        else:
            fresh = [version for version in store.versions() if not version.is_rolled_back]
            if not fresh:
                return None
            candidate = fresh[-1]
        decision = _decide(store, candidate, maximize=maximize)
        if decision.promotes and not dry_run:
            store.make_current(candidate)
        return decision


def _decide(store: ModelStore, candidate: Version, *, maximize: bool) -> Decision:
    current = store.current()
    promotes, reason = _compare(candidate, current, maximize=maximize)
    return Decision(
        region=store.folder.name,
        version=candidate,
        before=current,
        promotes=promotes,
        reason=reason,
    )


def _compare(new: Version, old: Version | None, *, maximize: bool) -> tuple[bool, str]:
    if not math.isfinite(new.value):
        return False, f"its value is {new.value}"
    if old is None:
        return True, "it is the first"
    if old.number == new.number:
        return False, "it is current"
    gain = (new.value - old.value) * (1 if maximize else -1)
    error = max(new.standard_error, old.standard_error)
    values = f"{new.value:g} against {old.value:g}, standard error {error:g}"
    if gain > error:
        return True, f"it is better: {values}"
    return False, f"it is not better by more than the standard error: {values}"
