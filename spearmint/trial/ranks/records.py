"""Files by which the ranks of a trial tell how they ended, in the folder ``ranks`` of the trial."""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spearmint.layout import TrialFolder, read_json, write_json
from spearmint.trial.gpu_memory import ANOTHER_DIED, OUT_OF_MEMORY
from spearmint.trial.languages import signal_name
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.processes import is_running

_TERMINATED = 15
_STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class RankEnd:
    """How a rank ended.

    Attributes:
        rank: Its number.
        outcome: Its numbers or ``{"reason": text}``; empty if its process was killed before.
        status: Exit status of its process, negative for a signal.
        ended: When, in seconds of the monotonic clock, which all processes of a host share.
    """

    rank: int
    outcome: dict[str, Any]
    status: int
    ended: float

    @property
    def has_failed(self) -> bool:
        """Whether it did not return from ``main``."""
        return not self.outcome or "reason" in self.outcome

    @property
    def is_out_of_memory(self) -> bool:
        """Whether it ran out of GPU memory."""
        return bool(self.outcome.get(OUT_OF_MEMORY))

    @property
    def is_consequence(self) -> bool:
        """Whether it probably failed only because another rank did."""
        if self.is_out_of_memory:
            return False
        reason = self.outcome.get("reason", "")
        return (
            self.status == -_TERMINATED if not self.outcome else bool(ANOTHER_DIED.search(reason))
        )

    def describe(self, n: int, host: str = "") -> str:
        """Return in one line which of ``n`` ranks it is, on which host, and why it failed."""
        which = f"rank {self.rank} of {n}" + (f" on {host}" if host else "")
        if self.outcome:
            return f"{which}: {self.outcome['reason']}"
        if self.status < 0:
            return f"{which} was killed by signal {-self.status} ({signal_name(-self.status)})"
        return f"{which} exited with status {self.status} before main returned"


class Records:
    """The folder with these files; ``rank`` is the number of a rank, ``n`` those of this host."""

    def __init__(self, folder: TrialFolder, place: Place | None = None) -> None:
        place = place or Place.here(folder, 1)
        self.path, self._first = Path(place.records), place.ranks.start

    def clear(self) -> None:
        """Create the folder without files of an earlier job."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()

    def write_start(self, rank: int, pid: int, port: int = 0) -> None:
        """Store the process that keeps a rank, and the port of the store on its host."""
        write_json(self.path / f"{rank}.start.json", {"pid": pid, "port": port})

    def port(self) -> int | None:
        """Return the port of the store of rank 0; None before rank 0 has started here."""
        return (read_json(self.path / "0.start.json") or {}).get("port")

    def lost(self, n: int) -> list[int]:
        """Return the ranks that were killed together with their keepers."""
        return [rank for rank in self._ranks(n) if self.is_lost(rank)]

    def is_lost(self, rank: int) -> bool:
        """Return whether a rank was killed together with its keeper, which tells how it ended."""
        pid = (read_json(self.path / f"{rank}.start.json") or {}).get("pid")
        return pid is not None and not is_running(pid) and self.end(rank) is None

    def write_stop(self, lost: list[int], when: float, killed: float) -> None:
        """Store that ranks get SIGTERM from ``when`` on, then SIGKILL, and which were lost."""
        write_json(self.path / "stop.json", {"lost": lost, "when": when, "killed": killed})

    def stop(self) -> tuple[list[int], float]:
        """Return what ``write_stop`` stored: the lost ranks, and when all were ended."""
        stored = read_json(self.path / "stop.json") or {}
        return stored.get("lost", []), stored.get("when", math.inf)

    def late_deaths(self, n: int) -> list[RankEnd]:
        """Return the ranks that died otherwise than by SIGTERM, seen after the stop.

        On a busy host, the keeper of the rank that failed first can be the last one to tell. None
        if that rank was lost: then the stop itself can be the cause, by a handler of SIGTERM.
        """
        stored = read_json(self.path / "stop.json") or {}
        if stored.get("lost"):
            return []
        begin, end = stored.get("when", math.inf), stored.get("killed", -math.inf)
        late = [each for each in self.ends(n, before=end) if each.ended > begin]
        return [each for each in late if not each.outcome and not each.is_consequence]

    def write_outcome(self, rank: int, outcome: dict[str, Any], when: float) -> None:
        """Store what the user's code returned, or why it failed."""
        write_json(self._outcome(rank), {"outcome": outcome, "ended": when})

    def outcome(self, rank: int) -> dict[str, Any]:
        """Return what a rank stored by ``write_outcome``; empty if it did not."""
        return dict((read_json(self._outcome(rank)) or {}).get("outcome", {}))

    def write_end(self, rank: int, status: int, when: float) -> None:
        """Store how the process of a rank ended; negative for a signal."""
        write_json(self._end(rank), {"status": status, "ended": when})

    def ends(self, n: int, before: float = math.inf) -> list[RankEnd]:
        """Return how the ranks of this host ended that did so before a time."""
        found = [end for rank in self._ranks(n) if (end := self.end(rank)) is not None]
        return [end for end in found if end.ended <= before]

    def end(self, rank: int) -> RankEnd | None:
        """Return how a rank ended; None if it still runs, or was killed with its keeper."""
        said, end = read_json(self._outcome(rank)) or {}, read_json(self._end(rank)) or {}
        if not (said or end):
            return None
        ended = said.get("ended", end.get("ended", 0.0))
        return RankEnd(rank, said.get("outcome", {}), end.get("status", 0), ended)

    def write_others(self, hosts: list[dict[str, Any]]) -> None:
        """Store how the ranks of other hosts ended."""
        write_json(self.path / "others.json", {"hosts": hosts})

    def others(self) -> list[dict[str, Any]]:
        """Return what ``write_others`` stored."""
        return list((read_json(self.path / "others.json") or {}).get("hosts", []))

    def release(self) -> None:
        """Let the keepers of this host end: the ranks of all hosts have returned."""
        (self.path / "released").touch()

    def wait_for_release(self) -> None:
        """Return when ``release`` was called."""
        while not (self.path / "released").exists():
            time.sleep(_STEP_S)

    def write_launch_failure(self, reason: str) -> None:
        """Store why torchrun could not start."""
        write_json(self.path / "launch.json", {"reason": reason})

    def launch_failure(self) -> str:
        """Return why torchrun could not start; empty if it did."""
        return str((read_json(self.path / "launch.json") or {}).get("reason", ""))

    def _ranks(self, n: int) -> range:
        return range(self._first, self._first + n)

    def _outcome(self, rank: int) -> Path:
        return self.path / f"{rank}.outcome.json"

    def _end(self, rank: int) -> Path:
        return self.path / f"{rank}.end.json"


def first_failure(ends: list[RankEnd]) -> RankEnd | None:
    """Return the rank that failed first, not one that failed because of it; None without any."""
    failed = [end for end in ends if end.has_failed]
    return min(failed, key=lambda end: (end.is_consequence, end.ended), default=None)
