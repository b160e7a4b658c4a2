"""Serve optuna-dashboard: ``python -m spearmint.view.dashboard_server HOST PORT``.

The storage is in the environment variable SPEARMINT_STORAGE.
The process ends when its parent ends, in any way.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time


def main() -> None:
    """Serve until the parent process ends."""
    host, port = sys.argv[1], int(sys.argv[2])
    storage = os.environ.pop("SPEARMINT_STORAGE")
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    dashboard = importlib.import_module("optuna_dashboard")
    dashboard.run_server(storage, host=host, port=port)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
