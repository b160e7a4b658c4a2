"""Serve the report of a running search next to the dashboard."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PATH = "/report"
"""Path of the report; a region is at ``/report/REGION``."""

_FRESH_S = 10.0  # a page that is not older is sent again: drawing takes seconds of CPU time


@dataclass
class LiveReport:
    """A WSGI application with the report of a search, in front of another application.

    Attributes:
        config: The config.pb of the search.
        url: URL of its storage.
        otherwise: The application for all other paths.
    """

    config: Path
    url: str
    otherwise: WSGIApplication
    _pages: dict[str, tuple[float, str]] = field(default_factory=dict)
    _drawing: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, as PEP 3333 describes."""
        path = environ.get("PATH_INFO", "").rstrip("/")
        if path != PATH and not path.startswith(f"{PATH}/"):
            return self.otherwise(environ, start_response)
        status, kind, text = self._answer(path.removeprefix(PATH).strip("/"))
        content = text.encode("utf-8", errors="replace")
        headers = [
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
        ]
        start_response(f"{status.value} {status.phrase}", headers)
        return [content]

    def _answer(self, region: str) -> tuple[HTTPStatus, str, str]:
        from spearmint.errors import InputError, SpearmintError

        try:
            return HTTPStatus.OK, "text/html", self._page(region)
        except InputError as error:
            return HTTPStatus.NOT_FOUND, "text/plain", f"{error}\n"
        except SpearmintError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n"

    def _page(self, region: str) -> str:
        from spearmint.html_report import live_page
        from spearmint.store.session import read_sessions

        # matplotlib is not safe for threads.
        with self._drawing:
            drawn, page = self._pages.get(region, (-_FRESH_S, ""))
            if time.monotonic() - drawn >= _FRESH_S:
                sessions = read_sessions(self.config, self.url, region or None)
                page = live_page(sessions, below=PATH)
                self._pages[region] = (time.monotonic(), page)
        return page
