"""Compare what the study says with what the trials recorded; no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from benchmarks.queue_faults.trials import Run


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of the trials.

    Attributes:
        complete, broken: Trials in the study.
        lost: Trials that are neither.
        wrong: Complete trials whose value no run of them returned.
        ended_twice: Trials that more than one run ran to their end.
        overlaps: Starts on a GPU, or in a slot, that another run still used.
        cut_off: Runs that did not reach their end.
    """

    complete: int
    broken: int
    lost: int
    wrong: int
    ended_twice: int
    overlaps: int
    cut_off: int

    def is_good(self, wanted: int) -> bool:
        """Return whether all trials are complete by one run each, and GPUs were exclusive."""
        complete, *bad, _ = astuple(self)
        return complete == wanted and not any(bad)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a search.

    Attributes:
        orphans: Processes of the user after the end.
        jobs: Jobs in the queue after the end.
        kills, errors: SIGKILLs of the controller, and its exits with an error.
        ended: Whether it exited with 0 at last.
    """

    driver: str
    verdict: Verdict
    orphans: list[str]
    jobs: list[str]
    kills: int
    errors: int
    ended: bool
    seconds: float

    def is_good(self, wanted: int) -> bool:
        """Return whether all guarantees held."""
        return self.ended and self.verdict.is_good(wanted) and not (self.orphans or self.jobs)


def judge(
    trials: Sequence[Mapping[str, Any]], runs: Sequence[Run], *, wanted: int, at_once: int
) -> Verdict:
    """Return what came of the trials.

    Args:
        trials: The rows of ``spearmint export --json``.
        runs: All runs, the oldest first.
        wanted: Number of trials of the search.
        at_once: Number of trials that may run at the same time.
    """
    states = Counter(trial["state"] for trial in trials)
    ends = Counter(run.trial for run in runs if run.value is not None)
    values = {(run.trial, run.value) for run in runs}
    complete = [trial for trial in trials if trial["state"] == "complete"]
    return Verdict(
        complete=len(complete),
        broken=states["broken"],
        lost=max(wanted, len(trials)) - len(complete) - states["broken"],
        wrong=sum((trial["id"], trial["value"]) not in values for trial in complete),
        ended_twice=sum(count > 1 for count in ends.values()),
        overlaps=_overlaps(runs) + max(0, _most_at_once(runs) - at_once),
        cut_off=sum(run.value is None for run in runs),
    )


def _overlaps(runs: Iterable[Run]) -> int:
    """Return how often a run began on a GPU before an earlier run there had its last line."""
    count, ends = 0, dict[str, float]()
    for run in runs:
        for device in run.devices:
            count += run.began < ends.get(device, 0.0)
            ends[device] = max(run.seen, ends.get(device, 0.0))
    return count


def _most_at_once(runs: Iterable[Run]) -> int:
    """Return the largest number of runs at the same time."""
    changes = sorted(change for run in runs for change in ((run.began, 1), (run.seen, -1)))
    count = most = 0
    for _, change in changes:
        count += change
        most = max(most, count)
    return most
