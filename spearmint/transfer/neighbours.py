"""Searches that run at the same time, such as regions of a search, and learn from each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spearmint.transfer.earlier import EarlierSearch

# A search teaches others from this number of complete trials on.
_FEWEST = 8
# Its model is fitted again when it has this many times as many trials.
_GROWTH = 1.3
_MOST_OTHERS = 5


@dataclass(slots=True)
class Neighbours:
    """What each search knows at the moment, read again when it has grown.

    The models of n trials are fitted a number of times that is logarithmic in n.
    """

    _known: dict[str, EarlierSearch] = field(default_factory=dict)

    def of(
        self, name: str, complete: Mapping[str, int], read: Callable[[str], EarlierSearch]
    ) -> list[EarlierSearch]:
        """Return what the search ``name`` learns from: the other searches with most trials.

        Args:
            name: The search that learns.
            complete: Number of complete trials of each search, by name.
            read: Returns a search by its name.
        """
        others = [other for other, n in complete.items() if other != name and n >= _FEWEST]
        for other in others:
            known = self._known.get(other)
            if known is None or complete[other] >= _GROWTH * known.n_complete:
                self._known[other] = read(other)
        largest = sorted(others, key=lambda other: -self._known[other].n_complete)
        return [self._known[other] for other in largest[:_MOST_OTHERS]]
