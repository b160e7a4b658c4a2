"""How many slots of a job a place can take, and why not more; no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from starcluster.balance.cell.model import Attribute, Environment, Job, Place
from starcluster.balance.cell.requests import matches, matches_queue, number, satisfied

Grants = list[tuple[Place, int]]
_SLOTS = Attribute(kind="INT", relation="<=", consumable="YES")


class Pools:
    """What is left of the consumables of all places while jobs are placed."""

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        self.attributes = attributes
        self._left: dict[tuple[str, str, str], float] = {}

    def left(self, place: Place, name: str) -> float:
        """Return what is left of a consumable."""
        return self._left.get(_pool(place, name), number(place.values[name].text))

    def take(self, job: Job, place: Place, slots: int, *, first: bool) -> None:
        """Take the consumables for some slots of a job; a negative number gives them back."""
        for name, wanted, attribute in self._wanted(job):
            amount = number(wanted) * (slots if _per_slot(attribute) else math.copysign(1, slots))
            if name in place.values and _is_used(attribute, first=first):
                self._left[_pool(place, name)] = self.left(place, name) - amount

    def capacity(self, job: Job, place: Place, *, first: bool) -> tuple[int, str]:
        """Return how many slots of a job a place can take, and what limits them.

        Args:
            first: Whether the job starts here; only there it uses what it needs once.
        """
        if not any(matches_queue(each, place.queue, place.host) for each in job.queues or ("*",)):
            return 0, f"-q {','.join(job.queues)}"
        most, limit = job.slots, ""
        for name, wanted, attribute in self._wanted(job):
            room, has = self._room(place, name, wanted, attribute, first=first)
            if room < most:
                asked = f"{job.slots} slots" if name == "slots" else f"{name}={wanted}"
                most, limit = room, f"{asked} ({has})"
        return most, limit

    def _room(
        self, place: Place, name: str, wanted: str, attribute: Attribute, *, first: bool
    ) -> tuple[int, str]:
        """Return for how many slots a place satisfies a request, and what it has."""
        value = place.values.get(name)
        if value is None:
            return 0, "it has none"
        everything = 10**9
        if attribute.consumable == "NO":
            fits = satisfied(attribute, wanted, value.text)
            return (everything if fits else 0), f"it has {value.text}"
        if not _is_used(attribute, first=first) or not number(wanted):
            return everything, ""
        left = self.left(place, name)
        where = "the cell has {} left" if value.level == "g" else "it has {}"
        has = where.format(value.text if left == number(value.text) else f"{left:g}")
        if math.isinf(left):
            return everything, has
        times = 0 if math.isnan(left / number(wanted)) else int(left // number(wanted))
        return (times if _per_slot(attribute) else everything * (times > 0)), has

    def _wanted(self, job: Job) -> Iterator[tuple[str, str, Attribute]]:
        yield "slots", "1", _SLOTS
        unknown = Attribute(kind="", relation="", consumable="NO")
        for name, wanted in job.requests.items():
            yield name, wanted, self.attributes.get(name, unknown)

    def grant(self, job: Job, places: Sequence[Place], chunk: int) -> Grants | None:
        """Take the slots of a job from places; None, and nothing is taken, if it does not start.

        Args:
            chunk: Slots on each host; 0 for any number.
        """
        least = chunk or 1
        master = next((p for p in places if self.capacity(job, p, first=True)[0] >= least), None)
        if master is None:
            return None
        grants: Grants = []
        left = job.slots
        for place in (master, *(each for each in places if each is not master)):
            room, _ = self.capacity(job, place, first=place is master)
            taken = min(room, left) if not chunk else chunk * (room >= chunk)
            if taken:
                self.take(job, place, taken, first=place is master)
                grants.append((place, taken))
                left -= taken
            if not left:
                return grants
        for place, taken in grants:
            self.take(job, place, -taken, first=place is master)
        return None


def chunk_of(job: Job, environment: Environment | None) -> int:
    """Return the slots of a job on each host according to the allocation rule; 0 for any."""
    if environment is None or environment.rule == "$pe_slots":
        return job.slots
    return int(environment.rule) if environment.rule.isdigit() else 0


def environments_of(job: Job, environments: Mapping[str, Environment]) -> list[str]:
    """Return the names of the parallel environments that a job allows."""
    return [name for name in environments if matches(job.pe, name)]


def _pool(place: Place, name: str) -> tuple[str, str, str]:
    level = place.values[name].level
    owner = {"g": "", "h": place.host}.get(level, f"{place.queue}@{place.host}")
    return level, owner, name


def _per_slot(attribute: Attribute) -> bool:
    return attribute.consumable == "YES" and attribute.relation != "EXCL"


def _is_used(attribute: Attribute, *, first: bool) -> bool:
    return attribute.consumable != "NO" and (first or _per_slot(attribute))
