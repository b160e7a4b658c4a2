"""Choose the GPUs of a job by the links between them.

The job gets the GPUs with the best links. Among equal sets it gets the one that leaves the most
linked GPUs to other jobs: a job takes its GPUs from the smallest island that has enough.
"""

from __future__ import annotations

from itertools import combinations, islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NVLINK, SWITCH, NODE, FAR = 1, 2, 3, 4
"""How two GPUs are connected: by NVLink, one PCIe switch, one NUMA node, or across NUMA nodes."""

_MOST_SETS = 20_000  # a topology without any symmetry must not delay jobs


class Links:
    """How the GPUs of a host are connected.

    Attributes:
        rows: For each UUID, in the order of the indices, the digits of its links to all of them;
            empty if unknown.
    """

    __slots__ = ("_places", "rows")

    def __init__(self, rows: Mapping[str, str] | None = None) -> None:
        rows = dict(rows or {})
        is_valid = all(
            len(row) == len(rows) and row.isascii() and row.isdigit() for row in rows.values()
        )
        self.rows = rows if is_valid else {}
        self._places = {uuid: place for place, uuid in enumerate(self.rows)}

    def level(self, one: str, other: str) -> int:
        """Return how two GPUs are connected; :data:`FAR` if unknown."""
        place = self._places.get(other)
        return FAR if place is None or one not in self.rows else int(self.rows[one][place])

    def choose(self, free: Sequence[str], wanted: int) -> list[str]:
        """Return ``wanted`` GPUs of ``free``, in the order of :meth:`order`; none if too few.

        Without known links these are the first ones. The same input always has the same result.

        Args:
            free: UUIDs in the order of the indices.
        """
        if not 0 < wanted <= len(free):
            return []
        if not self.rows or wanted == len(free):
            return self.order(free[:wanted])
        sets = islice(_sets(self._twins(free), wanted), _MOST_SETS)
        return self.order(min(sets, key=lambda chosen: self._score(chosen, free)))

    def order(self, uuids: Sequence[str]) -> list[str]:
        """Return ``uuids`` so that linked GPUs are neighbours; the lowest index is the first."""
        left = sorted(uuids, key=self._place)
        found = left[:1]
        while len(found) < len(left):
            rest = (uuid for uuid in left if uuid not in found)
            found.append(min(rest, key=lambda uuid: self.level(found[-1], uuid)))
        return found

    def _place(self, uuid: str) -> int:
        return self._places.get(uuid, len(self._places))

    def _score(self, chosen: Sequence[str], free: Sequence[str]) -> tuple[int, ...]:
        """Return less for a better set: its worst links first, then what it leaves, then indices.

        Of sets that leave the same, it prefers one with links to GPUs in use.
        """
        inside = self._count(chosen)
        outside = self._count([uuid for uuid in free if uuid not in chosen])
        used = [uuid for uuid in self.rows if uuid not in free]
        split = sum(self.level(one, other) == NVLINK for one in chosen for other in used)
        places = sorted(map(self._place, chosen))
        kept = [-outside[level] for level in (NVLINK, SWITCH, NODE)]
        return (*(inside[level] for level in (FAR, NODE, SWITCH)), *kept, -split, *places)

    def _count(self, uuids: Sequence[str]) -> list[int]:
        """Return the number of pairs in ``uuids`` by level."""
        counts = [0] * 10
        for one, other in combinations(uuids, 2):
            counts[self.level(one, other)] += 1
        return counts

    def _twins(self, free: Sequence[str]) -> list[list[str]]:
        """Return ``free`` in groups of GPUs that are interchangeable: linked alike to all others.

        So a host of eight GPUs has a few sets to compare instead of all combinations.
        """
        groups: list[list[str]] = []
        for uuid in free:
            group = next((group for group in groups if self._alike(group[0], uuid)), None)
            if group is None:
                groups.append([uuid])
            else:
                group.append(uuid)
        return groups

    def _alike(self, one: str, other: str) -> bool:
        third = (uuid for uuid in self.rows if uuid not in (one, other))
        return all(self.level(one, uuid) == self.level(other, uuid) for uuid in third)


def _sets(groups: Sequence[list[str]], wanted: int) -> Iterator[list[str]]:
    """Yield each choice of ``wanted`` GPUs that takes the first ones of each group."""
    if not groups:
        yield []
        return
    rest = groups[1:]
    least = max(0, wanted - sum(map(len, rest)))
    for count in range(min(len(groups[0]), wanted), least - 1, -1):
        for others in _sets(rest, wanted - count):
            yield groups[0][:count] + others
