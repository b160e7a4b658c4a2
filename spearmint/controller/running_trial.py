"""A trial with a living job, as the loop sees it, and what it leaves in files."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from spearmint.drivers import Job
from spearmint.layout import TrialFolder, read_json
from spearmint.model import Trial

_STUCK_S = 60.0
_TAIL_LINES, _TAIL_BYTES = 20, 8192


@dataclass(slots=True)
class Active:
    """A trial with a living job.

    Attributes:
        waiting: The job is queued; time counts from its start.
        started: Seconds since the epoch.
        reports_size: Bytes of its reports that were read.
        ended_by: Why the job was ended by us: "timeout", "pruned", or "" when it was not.
        ended_at: When, in seconds since the epoch.
    """

    trial: Trial
    folder: TrialFolder
    job: Job
    waiting: bool = False
    started: float = field(default_factory=time.time)
    result_since: float | None = None
    reports_size: int = 0
    ended_by: str = ""
    ended_at: float = 0.0

    def __post_init__(self) -> None:
        runner = read_json(self.folder.runner)
        if runner is not None:
            self.started = float(runner["start"])

    def seconds(self) -> float:
        """Return for how long it has run."""
        return 0.0 if self.waiting else time.time() - self.started

    def is_stuck(self) -> bool:
        """Tell whether it was ended by us and its host does not say that it has."""
        return bool(self.ended_by) and time.time() - self.ended_at > _STUCK_S

    def new_reports(self) -> bool:
        """Tell whether reports were written since the last call."""
        size = 0
        with contextlib.suppress(OSError):
            size = self.folder.reports.stat().st_size
        changed = size != self.reports_size
        self.reports_size = size
        return changed


def tail_of(output: Path) -> str:
    """Return the last lines of a trial's output."""
    with contextlib.suppress(OSError), output.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])
    return ""
