"""The storage of a study: Optuna's cache of trials, which is filled only if all are asked for."""

from __future__ import annotations

from collections.abc import Container, Sequence

from optuna.storages._cached_storage import _CachedStorage, _StudyInfo
from optuna.trial import FrozenTrial, TrialState

from spearmint.choosers.selection import Outline
from spearmint.store.sql.fast_reads import BulkReadStorage
from spearmint.store.sql.outlines import StoredOutline

_UNFINISHED = {TrialState.RUNNING, TrialState.WAITING}


class TrialStorage(_CachedStorage):
    """A cache over ``BulkReadStorage`` that reads no more trials than it is asked for."""

    _backend: BulkReadStorage

    def __init__(self, backend: BulkReadStorage) -> None:
        super().__init__(backend)
        self._outlines: dict[int, StoredOutline] = {}
        backend.on_rollback = self._forget

    def _forget(self) -> None:
        """Forget all trials: some were never stored, and others can get their numbers and ids."""
        with self._lock:
            self._studies.clear()
            self._trial_id_to_study_id_and_number.clear()
            self._study_id_and_number_to_trial_id.clear()
        self._outlines.clear()

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Return the trials in ``states``; running and queued ones without reading the others."""
        wanted = [] if states is None else [state for state in TrialState if state in states]
        if not wanted or not _UNFINISHED.issuperset(wanted):
            return super().get_all_trials(study_id, deepcopy, states)
        trials = self._backend.read_states(study_id, wanted)
        with self._lock:
            self._studies.setdefault(study_id, _StudyInfo())
            self._add_trials_to_cache(study_id, trials)
        return trials

    def get_n_trials(
        self, study_id: int, state: tuple[TrialState, ...] | TrialState | None = None
    ) -> int:
        """Return the number of trials in ``state``."""
        return self._backend.count(study_id, (state,) if isinstance(state, TrialState) else state)

    def get_trial_number_from_id(self, trial_id: int) -> int:
        """Return the number of a trial; of one that was read or created, from memory."""
        with self._lock:
            known = self._trial_id_to_study_id_and_number.get(trial_id)
        return super().get_trial_number_from_id(trial_id) if known is None else known[1]

    def outline(self, study_id: int) -> Outline:
        """Return the states and values of all trials."""
        return self._outline(study_id).updated()

    def read_numbers(self, study_id: int, numbers: Sequence[int]) -> list[FrozenTrial]:
        """Return the trials with these numbers, by number."""
        return self._outline(study_id).read(numbers)

    def _outline(self, study_id: int) -> StoredOutline:
        if study_id not in self._outlines:
            self._outlines[study_id] = StoredOutline(self._backend, study_id)
        return self._outlines[study_id]
