"""Serve optuna-dashboard: ``python -m spearmint.view.dashboard_server HOST PORT CONFIG``.

The report of the search is at ``/report``. The storage is in the environment variable
SPEARMINT_STORAGE, the key that requests need in SPEARMINT_WEB_KEY. The process ends when its parent
ends, in any way.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from spearmint.view.live_report import LiveReport
from spearmint.view.web_key import VARIABLE, WebKey


class _Server(ThreadingMixIn, WSGIServer):
    """The dashboard answers while a report is drawn."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main() -> None:
    """Serve until the parent process ends."""
    host, port, config = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    storage, key = os.environ.pop("SPEARMINT_STORAGE"), os.environ.pop(VARIABLE)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    dashboard = importlib.import_module("optuna_dashboard")
    report = LiveReport(config, storage, dashboard.wsgi(storage))
    app = WebKey(key=key, application=report)
    with make_server(host, port, app, server_class=_Server, handler_class=_Handler) as server:
        server.serve_forever()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
