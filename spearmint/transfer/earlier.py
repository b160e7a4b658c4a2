"""An earlier search as numbers and texts, which do not have to fit the search that learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    """

    name: str
    maximize: bool
    trials: tuple[EarlierTrial, ...]
    n_complete: int
