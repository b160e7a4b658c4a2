"""The report of a running search as a page that reloads itself, for a web server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spearmint.html_report.libraries import require_libraries

if TYPE_CHECKING:
    from spearmint.store.session import Session

RELOAD_S = 30
"""Seconds after which a browser loads the page again."""


def live_page(sessions: Sequence[Session], *, below: str) -> str:
    """Return the page of one search, or the page that compares several regions.

    Args:
        sessions: One search, or one session for each region.
        below: URL to which ``/REGION`` is added in links to the pages of the regions.

    Raises:
        InputError: The extra ``report`` is not installed.
        StorageError: The trials cannot be read.
    """
    require_libraries()
    from spearmint.html_report.contents import pictures, pictures_of_regions, read_digest
    from spearmint.html_report.page import render, render_regions

    digests = [read_digest(session) for session in sessions]
    if len(digests) == 1:
        return render(digests[0], pictures(digests[0]), reload_s=RELOAD_S)
    links = [f"{below}/{digest.experiment.region}" for digest in digests]
    return render_regions(digests, pictures_of_regions(digests), links, reload_s=RELOAD_S)
