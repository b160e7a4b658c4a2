"""Run a search: keep trials running, store their results, stop at the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.controller.events import SearchObserver, StudyCounts
from spearmint.controller.limits import SearchLimits, StudyLimits
from spearmint.controller.signals import StopRequest, stop_on_signals
from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.controller.controller import Controller
    from spearmint.controller.orphans import choose_driver, find_orphaned_jobs
    from spearmint.controller.study_run import StudyRun
    from spearmint.controller.submission import job_request

__all__ = [
    "Controller",
    "SearchLimits",
    "SearchObserver",
    "StopRequest",
    "StudyCounts",
    "StudyLimits",
    "StudyRun",
    "choose_driver",
    "find_orphaned_jobs",
    "job_request",
    "stop_on_signals",
]

# These modules import Optuna.
__getattr__ = lazy_names(
    __name__,
    {
        "Controller": "spearmint.controller.controller",
        "StudyRun": "spearmint.controller.study_run",
        "choose_driver": "spearmint.controller.orphans",
        "find_orphaned_jobs": "spearmint.controller.orphans",
        "job_request": "spearmint.controller.submission",
    },
)
