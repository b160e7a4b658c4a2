"""Show a search: progress, tables, status and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.view.dashboard import WebStatus
    from spearmint.view.progress import LiveObserver, PlainObserver, make_console, make_observer
    from spearmint.view.status import status_data, status_screen, watch_status
    from spearmint.view.tables import broken_lines, trial_table, trials_csv

__all__ = [
    "LiveObserver",
    "PlainObserver",
    "WebStatus",
    "broken_lines",
    "make_console",
    "make_observer",
    "status_data",
    "status_screen",
    "trial_table",
    "trials_csv",
    "watch_status",
]

_MODULES = {
    "dashboard": ("WebStatus",),
    "progress": ("LiveObserver", "PlainObserver", "make_console", "make_observer"),
    "status": ("status_data", "status_screen", "watch_status"),
    "tables": ("broken_lines", "trial_table", "trials_csv"),
}
# The status screen imports Optuna, and the other modules import rich.
__getattr__ = lazy_names(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
