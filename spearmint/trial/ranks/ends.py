"""How the ranks of a trial ended on each of its hosts, and what follows for the trial."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from spearmint.trial.gpu_memory import OUT_OF_MEMORY
from spearmint.trial.outputs import BadResult, Result
from spearmint.trial.ranks.records import RankEnd, Records, first_failure


@dataclass(frozen=True, slots=True)
class HostEnds:
    """How the ranks of one host ended.

    Attributes:
        host: Its name; empty if it is the only one.
        ends: The ranks that ended before this host was told to stop. Times are seconds since the
            epoch.
        late: Those that died after it, otherwise than by SIGTERM.
        lost: Ranks that were killed together with their keepers.
        failure: Why torchrun could not start, or why the host told nothing.
    """

    host: str
    ends: tuple[RankEnd, ...] = ()
    late: tuple[RankEnd, ...] = ()
    lost: tuple[int, ...] = ()
    failure: str = ""

    @classmethod
    def of(cls, records: Records, n: int, host: str = "") -> HostEnds:
        """Return what the ranks of this host have recorded."""
        lost, stopped = records.stop()
        ends, late = map(_at_epoch, (records.ends(n, before=stopped), records.late_deaths(n)))
        failure = records.launch_failure()
        if failure and host:
            failure = f"cannot start the ranks on {host}: {failure}"
        return cls(host, ends, late, tuple(lost), failure)

    @classmethod
    def read(cls, text: dict[str, Any]) -> HostEnds:
        """Return what :meth:`as_json` of another process returned."""
        ends, late = (tuple(RankEnd(**end) for end in text[key]) for key in ("ends", "late"))
        return cls(**{**text, "ends": ends, "late": late, "lost": tuple(text["lost"])})

    def as_json(self) -> dict[str, Any]:
        """Return it as numbers, texts, lists and dicts."""
        return asdict(self)

    @property
    def has_failed(self) -> bool:
        """Whether a rank failed or was lost, or torchrun could not start."""
        failed = any(end.has_failed for end in (*self.ends, *self.late))
        return bool(failed or self.lost or self.failure)


def _at_epoch(ends: Sequence[RankEnd]) -> tuple[RankEnd, ...]:
    """Return the ends with times that those of other hosts can be compared with."""
    since = time.time() - time.monotonic()
    return tuple(replace(end, ended=end.ended + since) for end in ends)


def result_of(hosts: Sequence[HostEnds], n: int) -> Result:
    """Return the numbers of rank 0.

    Args:
        hosts: The hosts, the first one with rank 0.
        n: Number of ranks on all of them.

    Raises:
        BadResult: A rank failed; the reason names it.
    """
    place = {end.rank: host.host for host in hosts for end in (*host.ends, *host.late)}
    lost = [(rank, host.host) for host in hosts for rank in host.lost]
    ends = [end for host in hosts for end in host.ends]
    is_lost = bool(lost or any(host.failure for host in hosts))  # others fail because of it
    late = [] if is_lost else [end for host in hosts for end in host.late]
    failed = first_failure([*ends, *late])
    if failed is not None and not (failed.is_consequence and is_lost):
        details = {OUT_OF_MEMORY: True} if failed.is_out_of_memory else {}
        raise BadResult(failed.describe(n, place[failed.rank]), **details)
    for rank, host in lost:
        where = f" on {host}" if host else ""
        raise BadResult(f"rank {rank} of {n}{where} was killed with the process that started it")
    for each in hosts:
        if each.failure:
            raise BadResult(each.failure)
    if len(ends) < n:
        raise BadResult("torchrun ended before all ranks returned from main; see the output")
    return ends[0].outcome
