"""Ask Grid Engine if an empty cell could run a job: ``qalter -w v``, which changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sge_jobs.queue.commands import Commands

_NO_QUEUE = "verification: no suitable queues"
_JOB = re.compile(r"^Job \d+(?:\.\d+)? ")
_PLACE = re.compile(r'((?:at host|in queue|queue instance) )"([^"]+)"')
_LOAD_VALUE = re.compile(r"(hl:\w+=)\S+")
_UNKNOWN = re.compile(r"job requests unknown resource \(([^)]+)\)")
_REQUESTS = re.compile(r"\(-l ([^)]+)\)")
_SHOWN = 3
ANYWHERE = "hostname=*"
"""A request that every host meets; it replaces all requests of a job in a verification."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a job fits into the empty cell, and Grid Engine's reason for each place if not."""

    fits: bool
    reasons: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The reasons; a reason that several places share is written once."""
        groups: dict[str, list[str]] = {}
        for reason in self.reasons:
            groups.setdefault(_PLACE.sub(r"\1*", reason), []).append(reason)
        most = sorted(groups.values(), key=len, reverse=True)
        lines = [
            f"{same[0]}, and {len(same) - 1} more" if len(same) > 1 else same[0]
            for same in most[:_SHOWN]
        ]
        return "\n".join(lines) or "no queue instance exists"

    @property
    def key(self) -> str:
        """The reasons without the names of places and without measured values."""
        kinds = {_LOAD_VALUE.sub(r"\1", _PLACE.sub(r"\1*", reason)) for reason in self.reasons}
        return "\n".join(sorted(kinds))

    @property
    def unknown(self) -> set[str]:
        """Resources without a value: no host offers them, or only running hosts report them."""
        return set(_UNKNOWN.findall("\n".join(self.reasons)))

    @property
    def requests(self) -> list[str]:
        """The resources that the job requests, each ``name=value``."""
        found = _REQUESTS.search("\n".join(self.reasons))
        return found[1].split(",") if found else []


def verify(
    commands: Commands,
    id: str,
    *,
    requests: Iterable[str] = (),
    queues: Iterable[str] = (),
    with_load: bool = False,
) -> Verification:
    """Verify a waiting job.

    Args:
        requests: Resources that replace those of the job; none to keep them.
        queues: Queue instances that replace those of the job; none to keep them.
        with_load: Also use the current load and the current jobs of the hosts.
    """
    options = ["-w", "p" if with_load else "v"]
    for option, values in (("-l", list(requests)), ("-q", list(queues))):
        options += [option, ",".join(values)] if values else []
    answer = commands.run("qalter", *options, id)
    lines = [line.strip() for line in answer.words.splitlines()]
    if _NO_QUEUE not in lines:  # it fits, or runs, is held, or no longer exists
        return Verification(True)
    return Verification(False, tuple(_JOB.sub("", line) for line in lines if _JOB.match(line)))
