"""When a variable is active: conditions on the values of other variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Condition:
    """One ``when`` of a variable: its ``parent`` must have one of ``values``.

    Values are the options of an ENUM, or integers of an INT.
    """

    parent: str
    values: tuple[str | int, ...]

    def __str__(self) -> str:
        """Return ``model=svm|forest``, as in config.pb."""
        return f"{self.parent}={'|'.join(map(str, self.values))}"


class Conditional(Protocol):
    """A variable: its name, and the conditions that must all hold."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def when(self) -> tuple[Condition, ...]:
        """Its conditions; empty if it is always active."""


V = TypeVar("V", bound=Conditional)

Requirements = Mapping[str, tuple[Condition, ...]]
"""By name of each conditional variable: its conditions and those of all its ancestors."""


_latest: tuple[tuple[Any, ...], Requirements] = ((), {})


def requirements(variables: tuple[V, ...]) -> Requirements:
    """Return all conditions that must hold for each conditional variable; there is no cycle."""
    global _latest
    known, found = _latest
    # A search asks for the same tuple again and again; to hash it would take longer than the rest.
    if known is not variables:
        found = _requirements(variables)
        _latest = (variables, found)
    return found


def _requirements(variables: Sequence[V]) -> Requirements:
    own = {variable.name: variable.when for variable in variables if variable.when}
    found: dict[str, tuple[Condition, ...]] = {}
    parents = {name: [each.parent for each in when] for name, when in own.items()}
    for name in TopologicalSorter(parents).static_order():
        if when := own.get(name):
            above = (each for condition in when for each in found.get(condition.parent, ()))
            found[name] = tuple(dict.fromkeys((*when, *above)))
    return {name: found[name] for name in own}


def active_variables(variables: Sequence[V], values: Mapping[str, Any]) -> Iterator[V]:
    """Return the variables that are active at a point.

    Args:
        variables: All variables of the search.
        values: The point, by element name; it can omit inactive variables.
    """
    needed = requirements(tuple(variables))
    if not needed:
        return iter(variables)
    return (each for each in variables if holds(needed.get(each.name, ()), values))


def holds(conditions: Sequence[Condition], values: Mapping[str, Any]) -> bool:
    """Return whether all ``conditions`` hold at a point; False if it omits a parent."""
    return all(values.get(each.parent) in each.values for each in conditions)


def parents_first(variables: Sequence[V]) -> list[V]:
    """Return the variables in an order in which parents precede the variables that need them."""
    needed = requirements(tuple(variables))
    depth = {name: len({each.parent for each in all_}) for name, all_ in needed.items()}
    return sorted(variables, key=lambda variable: depth.get(variable.name, 0))
