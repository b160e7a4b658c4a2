"""What a balancer knows of a Grid Engine cell: jobs, places for them, and a node to add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class JobState(StrEnum):
    """Whether a job that does not run is able to start."""

    WAITING = "waiting"
    HELD = "held"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that does not run, or the pending tasks of an array job.

    Attributes:
        tasks: Number of pending tasks; each starts on its own.
        startable: Number of tasks that can run in addition to the running ones (``-tc``); None
            for all.
        pe: Pattern of its parallel environments; empty for a job of one slot.
        slots: Slots of one task; the lowest number of a range.
        requests: Hard requests (``-l``) by the full name of the attribute.
        queues: Patterns of queues (``-q``), such as ``all.q`` or ``*@node001``; empty for any.
        blocked: Why it waits for something other than a place, such as a quota; empty if it does
            not.
    """

    id: str
    state: JobState = JobState.WAITING
    waited_s: float = 0.0
    tasks: int = 1
    startable: int | None = None
    pe: str = ""
    slots: int = 1
    requests: Mapping[str, str] = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    blocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A row of ``qconf -sc``.

    Attributes:
        kind: ``INT``, ``MEMORY``, ``STRING``, ...
        relation: Relation of the request to the value of a place, such as ``<=``.
        consumable: ``NO``, ``YES`` (per slot) or ``JOB`` (once for a job).
    """

    kind: str
    relation: str
    consumable: str


@dataclass(frozen=True, slots=True)
class Value:
    """What a place has of an attribute: the part that is left if it is consumable.

    Attributes:
        level: ``g`` if the whole cell shares it, ``h`` the queues of a host, ``q`` if the queue
            instance has its own.
    """

    text: str
    level: str = "q"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A queue instance.

    Attributes:
        environments: Names of its parallel environments.
        usable: Whether it accepts jobs: not disabled, unreachable or in an error state.
        idle: Whether no job runs in it.
    """

    queue: str
    host: str
    values: Mapping[str, Value]
    environments: frozenset[str] = frozenset()
    usable: bool = True
    idle: bool = True

    @property
    def free_slots(self) -> int:
        """Number of free slots."""
        return int(float(self.values["slots"].text)) if "slots" in self.values else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A parallel environment.

    Attributes:
        rule: Its allocation rule.
        free: Slots that its jobs can still use.
    """

    rule: str
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node as the balancer adds it.

    Attributes:
        kind: Its instance type.
        places: Its queue instances while it is idle.
    """

    kind: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The places of a cell, and its settings."""

    places: tuple[Place, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    environments: Mapping[str, Environment] = field(default_factory=dict)
