"""The names in Redis of one search, and what both sides call a start of a job."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Literal

_SEARCH = re.compile(r"[0-9a-f]{24}")
_FIELD = re.compile(r"([0-9a-f]{12}\.[0-9a-f]{12})\.([0-9a-f]{16})")

Side = Literal["controller", "host"]


def new_search() -> str:
    """Return a random name of a search."""
    return secrets.token_hex(12)


def is_search(text: object) -> bool:
    """Return whether ``text`` is a name of a search."""
    return isinstance(text, str) and _SEARCH.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one search in Redis."""

    search: str

    def said_by(self, side: Side) -> str:
        """Return the hash with the last message of one side about each start of a job."""
        return f"spearmint:{self.search}:{side}"

    @property
    def both(self) -> tuple[str, str]:
        """The hashes of both sides."""
        return self.said_by("controller"), self.said_by("host")

    @property
    def signal(self) -> str:
        """Signal of the controller; its texts are starts."""
        return f"spearmint:{self.search}:signal"

    def signal_of(self, start: str) -> str:
        """Return the signal of the host of a start."""
        return f"spearmint:{self.search}:signal:{start}"

    def piece(self, start: str, side: Side, digest: str, number: int) -> str:
        """Return the name of a piece that one side has put."""
        return f"spearmint:{self.search}:{side}:{start}:{digest}:{number}"

    def context(self, side: Side, start: str) -> tuple[str, ...]:
        """Return what a message is about, for its signature."""
        return (side, self.search, start)


def new_start(job: str) -> str:
    """Return a name for one start of a job: its id and a random text of the host."""
    return f"{job}.{secrets.token_hex(8)}"


def job_of(start: str) -> str | None:
    """Return the id of the job; None if ``start`` is not a name of a start."""
    found = _FIELD.fullmatch(start)
    return found[1] if found else None
