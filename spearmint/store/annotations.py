"""Notes and tags that users give to trials."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import optuna

from spearmint.model import Trial
from spearmint.store.errors import wraps_storage_errors

_NOTE, _TAG = "spearmint:note", "spearmint:tag"
_APPLIED = "spearmint:applied_requests"


class Annotations:
    """The methods of :class:`spearmint.store.study.Study` for what users say about trials.

    Optuna stores no attribute of a finished trial, so notes and tags are attributes of the study.
    Each note and each tag has its own key: two writers lose nothing, and need no lock.
    """

    _study: optuna.Study

    @wraps_storage_errors()
    def add_note(self, trial_id: int, text: str) -> None:
        """Add a note to a trial."""
        key = f"{_NOTE}:{trial_id}:{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        self._study.set_user_attr(key, text)

    @wraps_storage_errors()
    def delete_notes(self, trial_id: int) -> int:
        """Delete the notes of a trial, and return their number."""
        keys = [key for key, text in self._stored(f"{_NOTE}:{trial_id}:") if text is not None]
        for key in keys:
            self._study.set_user_attr(key, None)
        return len(keys)

    @wraps_storage_errors()
    def set_tag(self, trial_id: int, tag: str, *, present: bool = True) -> None:
        """Add a tag to a trial, or remove it."""
        self._study.set_user_attr(f"{_TAG}:{trial_id}:{tag}", present)

    @wraps_storage_errors()
    def annotated(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return ``trials`` with their notes, the oldest first, and their tags by name."""
        notes, tags = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
        for key, text in self._stored(f"{_NOTE}:"):
            if text is not None:
                notes[int(key.split(":")[2])].append(str(text))
        for key, present in self._stored(f"{_TAG}:"):
            if present:
                _, _, trial_id, tag = key.split(":", 3)
                tags[int(trial_id)].append(tag)
        return [
            replace(trial, notes=tuple(notes[trial.id]), tags=tuple(tags[trial.id]))
            if trial.id in notes or trial.id in tags
            else trial
            for trial in trials
        ]

    @wraps_storage_errors()
    def noted(self) -> list[Trial]:
        """Return the trials that have notes, by id."""
        keys = [key for key, text in self._stored(f"{_NOTE}:") if text is not None]
        found = map(self.find, sorted({int(key.split(":")[2]) for key in keys}))
        return self.annotated([trial for trial in found if trial is not None])

    def find(self, trial_id: int) -> Trial | None:
        """Return the trial ``trial_id`` in any state; None if there is none."""
        raise NotImplementedError

    def _stored(self, prefix: str) -> list[tuple[str, Any]]:
        found = self._study.user_attrs.items()
        return sorted((key, value) for key, value in found if key.startswith(prefix))

    @wraps_storage_errors()
    def applied_requests(self) -> list[str]:
        """Return the ids of requests whose effect is stored, but whose file can still exist."""
        return list(self._study.user_attrs.get(_APPLIED, ()))

    @wraps_storage_errors()
    def mark_applied(self, request_id: str, present: Iterable[str]) -> None:
        """Store that a request is applied; forget those that are not ``present`` any more."""
        kept = set(present).intersection(self.applied_requests())
        self._study.set_user_attr(_APPLIED, sorted({*kept, request_id}))
