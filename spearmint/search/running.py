"""The running trials of a block of ``one_transaction``, read at once."""

from __future__ import annotations

from spearmint.model import Trial
from spearmint.store.study import Study


class RunningTrials:
    """Finds the running trials of a block: the first one alone, then all others in one read."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._known: dict[int, Trial] | None = None
        self._has_read = False

    def find_running(self, trial_id: int) -> Trial | None:
        """Return the running trial ``trial_id``; None if there is none.

        A trial is returned from memory once: what the block stored of it is read again.
        """
        if self._has_read and self._known is None:
            self._known = {trial.id: trial for trial in self._study.running()}
        self._has_read = True
        found = self._known.pop(trial_id, None) if self._known else None
        return found or self._study.find_running(trial_id)
