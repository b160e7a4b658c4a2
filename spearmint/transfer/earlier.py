"""An earlier search as numbers and texts, which do not have to fit the search that learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MOST_OTHERS = 5


@dataclass(frozen=True, slots=True)
class EarlierTrial:
    """A complete trial of an earlier search.

    Attributes:
        params: Values by element name: a number, or the text of a category.
        value: The objective, finite.
        is_feasible: Whether it meets the constraints of its search.
    """

    params: Mapping[str, float | str]
    value: float
    is_feasible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EarlierSearch:
    """Trials of an earlier search. Two objects are never equal.

    Attributes:
        name: How messages name it.
        maximize: Whether larger values are better.
        trials: Complete trials; of many, the best and others at random.
        n_complete: Number of all complete trials.
        region: Its region; empty without regions.
        is_own: Whether it is the last generation of the search that learns. Its best points are
            then queued anyway.
    """

    name: str
    maximize: bool
    trials: tuple[EarlierTrial, ...]
    n_complete: int
    region: str = ""
    is_own: bool = False


def for_region(earlier: Sequence[EarlierSearch], region: str) -> list[EarlierSearch]:
    """Return what a region learns from: of its own last generation, only the same region.

    A new region learns from the first few of the others.
    """
    own = [each for each in earlier if each.is_own]
    same = [each for each in own if each.region == region] or own[:_MOST_OTHERS]
    return [each for each in earlier if not each.is_own or each in same]
