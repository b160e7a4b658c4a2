"""Compare what a command says at its end with the true state of the cluster; no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from starcluster.aws.instances import LIVE

BILLED = ("pending", "running")
_AT_LAST = {"pending": "running", "stopping": "stopped"}
_CENT = 0.006  # prices are rounded


@dataclass(frozen=True)
class Truth:
    """The instances of a cluster that exist.

    Attributes:
        states: By alias; an instance without alias has its id.
        price: Dollars per hour of one instance.
    """

    states: Mapping[str, str]
    price: float
    twice: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str]], price: float) -> Truth:
        """Return the truth of aliases and states."""
        live = [(alias, state) for alias, state in rows if state in LIVE]
        names = [alias for alias, _ in live]
        twice = tuple(sorted({alias for alias in names if names.count(alias) > 1}))
        return cls(dict(live), price, twice)

    @property
    def there(self) -> list[str]:
        """All aliases, sorted."""
        return sorted(self.states)

    @property
    def billed(self) -> list[str]:
        """The aliases of instances that cost money, sorted."""
        return sorted(alias for alias, state in self.states.items() if state in BILLED)


Found = re.Match[str]
Statement = tuple[str, str, Callable[[Found, Truth, Truth], bool]]


def _names(text: str) -> list[str]:
    return sorted(text.split(", "))


def _exist(found: Found, now: Truth, before: Truth) -> bool:
    if _names(found[1]) != now.there:
        return False
    dollars = re.match(r"\$([\d.]+)/h", found[2])
    return not dollars or abs(float(dollars[1]) - now.price * len(now.billed)) < _CENT


def _ready(found: Found, now: Truth, before: Truth) -> bool:
    return int(found[1]) == len(now.billed) == len(now.there)


def _stopped(found: Found, now: Truth, before: Truth) -> bool:
    named = [] if found[1].startswith("no instance") else _names(found[1])
    return not now.billed and set(named) <= set(now.there)


def _listed(found: Found, now: Truth, before: Truth) -> bool:
    states = {_AT_LAST.get(state, state) for state in found[1].split("/")}
    true = {_AT_LAST.get(state, state) for state in now.states.values()}
    return int(found[2]) == len(now.there) and states == true


def _failed(found: Found, now: Truth, before: Truth) -> bool:
    """Return whether the nodes that are named as terminated do not exist."""
    gone = re.findall(r"(?m)^  (\S+): .*SpotInstanceTermination", found[0])
    return bool(gone) and not set(gone) & set(now.there)


STATEMENTS: tuple[Statement, ...] = (
    ("traceback", r"Traceback", lambda *_: False),
    ("aborted", r"Aborted!", lambda *_: False),
    ("instances exist", r"instances? exists? \((.*?)\)(?::? (\$[\d.]+/h))?", _exist),
    ("no instances", r"has no instances", lambda _, now, before: not now.there),
    ("nodes vanished", r"(?s)nodes failed\n.*", _failed),
    ("listed", r"(?m)^c\d+: ([a-z/-]+), (\d+) nodes? in ", _listed),
    ("ready", r"is ready, (\d+) nodes\. Log in", _ready),
    (
        "added",
        r"is ready, \d+ nodes\. New: (.*)",
        lambda found, now, _: set(_names(found[1])) <= set(now.billed),
    ),
    ("stopped", r"(?m)^Stopped \S+: (.*)\.$", _stopped),
    (
        "removed",
        r"(?m)^Removed from \S+: (.*)\.$",
        lambda found, now, _: not set(_names(found[1])) & set(now.there),
    ),
    ("terminated", r"(?m)^Terminated ", lambda _, now, before: not now.there),
    ("exists", r"already exists", lambda _, now, before: bool(now.there)),
    ("does not exist", r"does not exist", lambda _, now, before: not now.there),
    (
        "nothing changed",
        r"nothing was launched or changed",
        lambda _, now, before: now.states == before.states,
    ),
    ("nothing runs", r"no node of cluster '\S+' is running", lambda _, now, before: not now.billed),
    (
        "too few nodes",
        r"has only (\d+) nodes, not counting",
        lambda found, now, _: int(found[1]) == len(now.there) - ("master" in now.there),
    ),
)
ONLY_OTHERS = (
    ("who does it", r"(?m)^Error: .*being \w+ by"),
    ("taken over", r"another command took over"),
    ("master ended", r"(?m)^Error: .*is (stopping|stopped|shutting-down|terminated)"),
    ("nodes failed", r"nodes failed|master failed"),
    ("removed by another", r"no longer has"),
    ("no such node", r"no node '?\S+'? in|no instance has|already exists"),
)
"""Messages that are true only if another command changes the cluster."""


def judged(
    text: str, now: Truth, before: Truth, *, others: bool, at_once: bool
) -> tuple[str, bool]:
    """Return the kind of a command's last message, and whether all that it says is so.

    Args:
        now, before: What exists now, and what existed before the command.
        others: Another command possibly changed the cluster since this one looked at it last.
        at_once: Another command ran at some time while this one did.
    """
    kinds = []
    for kind, pattern, holds in STATEMENTS:
        if found := re.search(pattern, text):
            kinds.append(kind)
            never = kind in ("traceback", "aborted")
            if (never or not others) and not holds(found, now, before):
                return kind, False
    if kinds:
        return kinds[0], True
    for kind, pattern in ONLY_OTHERS:
        if re.search(pattern, text):
            return kind, at_once
    return "other", False
