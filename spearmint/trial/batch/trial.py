"""One of the trials that ``main_batch`` receives. Imports only the standard library and layout."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spearmint.layout import STEPS, TrialFolder
from spearmint.trial.failure import MOST_REASON, failure_of
from spearmint.trial.languages import Spec, numbers_of, to_arrays
from spearmint.trial.outputs import BadResult
from spearmint.trial.reporting import add_report

_LOCK = threading.RLock()  # of all trials of the process: the time of one depends on the others
os.register_at_fork(
    before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
)


class BatchTrial:
    """A trial that trains together with others in one process.

    Each trial gets its own result by :meth:`tell` or :meth:`fail`, which are stored at once; the
    first of these calls counts. A trial without one when ``main_batch`` returns has failed.
    Threads and child processes of the job can call all methods.

    Attributes:
        id: Number of the trial, which ``main`` receives as ``job_id``.
        params: Its parameters, as ``main`` receives them.
        files: Directory for its files, such as a checkpoint. It has those of earlier jobs.
    """

    def __init__(
        self,
        spec: Spec,
        folder: TrialFolder,
        on_end: Callable[[BatchTrial, Mapping[str, Any] | None], None],
    ) -> None:
        self.id = int(spec["job_id"])
        self.params: dict[str, Any] = to_arrays(spec["params"])
        self.files: Path = folder.files
        self.spec, self.folder = spec, folder
        self._on_end, self._has_ended = on_end, False

    @property
    def has_ended(self) -> bool:
        """Whether it has a result, or was stopped: it needs no more training."""
        with _LOCK:
            if not self._has_ended and self.folder.result.exists():  # told by a child process
                self._end(None)
            return self._has_ended or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether the pruner or a user has stopped it; its result is not stored any more."""
        is_stopped = self.folder.stop.exists()
        with _LOCK:
            if is_stopped and not self._has_ended:
                self._end(None)
        return is_stopped

    def steps(self, last: int, after: int = 0) -> range:
        """Return the steps to train now, as :func:`spearmint.steps` for a trial of its own."""
        until = self.spec[STEPS][1] if STEPS in self.spec else last
        return range(after + 1, min(last, int(until)) + 1)

    def report(self, step: int, value: float) -> bool:
        """Report the objective at ``step``; return whether to stop training this trial.

        See :func:`spearmint.report`. A stopped trial needs neither ``tell`` nor ``fail``.
        """
        if not self._has_ended:
            add_report(self.folder.reports, step, value)
        return self.has_ended

    def tell(self, value: object) -> None:
        """Store the result: what ``main`` would return, a number or a dict of numbers.

        Anything else, such as NaN, makes this trial fail and no other.
        """
        try:
            result = numbers_of(self.spec, value, f"trial {self.id} got")
        except BadResult as error:
            result = {"reason": str(error)}
        except Exception as error:  # noqa: BLE001 - such as of a GPU that has the number
            result = failure_of(error, Path(self.spec["directory"]))
        self._tell(result)

    def fail(self, reason: str | BaseException) -> None:
        """Store that this trial failed (is broken).

        Args:
            reason: One line, or an exception: its traceback is printed.
        """
        if isinstance(reason, BaseException):
            self._tell(failure_of(reason, Path(self.spec["directory"])))
        else:
            self._tell({"reason": " ".join(str(reason).split())[:MOST_REASON] or "failed"})

    def _tell(self, result: Mapping[str, Any]) -> None:
        with _LOCK:
            if not self.has_ended:
                self._end(result)

    def _end(self, result: Mapping[str, Any] | None) -> None:
        self._has_ended = True
        self._on_end(self, result)
