"""Store a search: its Optuna studies, the owner of its directory, and its record files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.store.lock import ExperimentLock, holder_of
    from spearmint.store.opening import delete_study, open_studies, open_study, study_names
    from spearmint.store.owner import Ownership, read_ownership, storage_url, take_ownership
    from spearmint.store.records import Records
    from spearmint.store.session import Session, in_region, read_sessions, run_sessions
    from spearmint.store.study import Study

__all__ = [
    "ExperimentLock",
    "Ownership",
    "Records",
    "Session",
    "Study",
    "delete_study",
    "holder_of",
    "in_region",
    "open_studies",
    "open_study",
    "read_ownership",
    "read_sessions",
    "run_sessions",
    "storage_url",
    "study_names",
    "take_ownership",
]

_MODULES = {
    "lock": ("ExperimentLock", "holder_of"),
    "opening": ("delete_study", "open_studies", "open_study", "study_names"),
    "owner": ("Ownership", "read_ownership", "storage_url", "take_ownership"),
    "records": ("Records",),
    "session": ("Session", "in_region", "read_sessions", "run_sessions"),
    "study": ("Study",),
}
# A study imports Optuna, and a URL imports SQLAlchemy. A lock imports neither.
__getattr__ = lazy_names(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
