"""What users can do about each of Grid Engine's reasons."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_OFFERS = re.compile(r"offers only (?:hc|qc|qf|gc|hf|gf|hl|ql):([\w.]+)=([\w.]+)")
_FIXES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(r"exceeds limit .* in rule \"([^/\"]+)"),
        lambda found: f"Show the quota: qconf -srqs {found[1]}    Only a manager can raise it.",
    ),
    (
        re.compile(r"no permission for cluster queue \"([^\"]+)\""),
        lambda found: (
            f"Show who can use the queue: qconf -sq {found[1]}    See its user_lists and"
            " xuser_lists. A manager adds users to a list: qconf -au USER LIST"
        ),
    ),
    (
        re.compile(r"cannot run in PE \"([^\"]+)\""),
        lambda found: (
            f"Request fewer slots (--slots), or show the slots of the environment: qconf"
            f" -sp {found[1]}    and of each host: qhost -q"
        ),
    ),
    (
        re.compile(r"unknown resource \(gpu\)"),
        lambda found: (
            "No host of these queues has GPUs. As a manager, on the master: sge-jobs setup"
        ),
    ),
    (
        re.compile(r"unknown resource \(([^)]+)\)"),
        lambda found: (
            f"No host offers {found[1]}. Leave it out, or show what hosts offer: qhost"
            f" -F {found[1]}"
        ),
    ),
    (_OFFERS, lambda found: f"Request another {found[1]}, or show what hosts offer: qhost -F"),
    (
        re.compile(r"not contained in its hard queue list"),
        lambda found: "Request another queue (--queue), or none. List them: qconf -sql",
    ),
)


def request_fix(reasons: str) -> str:
    """Return what to do about a request that no host can meet."""
    for pattern, fix in _FIXES:
        if found := pattern.search(reasons):
            most = _largest_offer(reasons) if pattern is _OFFERS else ""
            return most or fix(found)
    return "Show what hosts offer: qhost -F    and the queues: qstat -f"


def _largest_offer(reasons: str) -> str:
    """Return the fix for the resource of which hosts offer too little; empty if there is none."""
    offers = [(name, _number(text)) for name, text in _OFFERS.findall(reasons)]
    numbers = [(name, value) for name, value in offers if value is not None]
    if not numbers:
        return ""
    name = numbers[0][0]
    return _offer(name, max(value for other, value in numbers if other == name))


def _offer(name: str, most: float) -> str:
    if name == "slots":
        return "A queue needs slots: qconf -rattr queue slots NUMBER QUEUE"
    if name == "gpu":
        return f"Request at most {most:g} GPUs (--gpus), or list the GPUs: sge-jobs gpus"
    return f"Request at most {name}={most:g}, or show what hosts offer: qhost -F {name}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_STATES: Mapping[str, tuple[str, str]] = {
    "d": ("disabled", "As a manager: qmod -e {}"),
    "D": ("disabled by its calendar", "Wait for the calendar. Show its name: qconf -sq {queue}"),
    "s": ("suspended", "As a manager: qmod -usq {}"),
    "C": ("suspended by its calendar", "Wait for the calendar. Show its name: qconf -sq {queue}"),
    "S": ("suspended by another queue", "Show the other queue: qconf -sq {queue}"),
    "E": (
        "in error, because a job failed to start there",
        "Show why: qstat -f -explain E    Then, as a manager: qmod -cq {}",
    ),
    "c": ("ambiguous in its configuration", "Show why: qstat -f -explain c"),
    "o": ("orphaned: its queue no longer has this host", "Request another queue (--queue)"),
    "u": ("on a host that does not respond", "List the problems: sge-jobs check"),
    "a": ("in alarm: the load of its host exceeds a threshold", "Show it: qstat -f -explain a"),
    "A": ("in suspend alarm: the load of its host exceeds a threshold", "qstat -f -explain A"),
}
_NAMED = 3
PASSING = "uaA"
"""States that end without a manager."""
CLOSED = "".join(_STATES)
"""States in which a queue instance starts no jobs."""


def state_reason(states: Mapping[str, str]) -> str:
    """Return why queue instances start no jobs, from their states by name."""
    return "\n".join(
        f"queue {_list(names)}: {_STATES[letter][0]} (state {letter})"
        for letter, names in _by_letter(states).items()
    )


def state_fix(states: Mapping[str, str]) -> str:
    """Return what to do about queue instances that start no jobs."""
    fixes = []
    for letter, names in _by_letter(states).items():
        queue = names[0].partition("@")[0]
        place = " ".join(names) if len(names) <= _NAMED else queue
        fixes.append(_STATES[letter][1].format(place, queue=queue))
    return "    ".join(dict.fromkeys(fixes))


def _by_letter(states: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the queue instances by the first of their states, in the order of importance."""
    found: dict[str, list[str]] = {}
    for letter in CLOSED:
        for name, state in states.items():
            if letter in state and not any(name in names for names in found.values()):
                found.setdefault(letter, []).append(name)
    return found


def _list(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
