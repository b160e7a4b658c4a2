"""Write the report of a search: read the trials, draw the plots, render the page.

The modules for plots and pages are imported only when a report is written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spearmint.errors import InputError
from spearmint.html_report.libraries import require_libraries

if TYPE_CHECKING:
    from spearmint.html_report.page import Picture
    from spearmint.html_report.plots.digest import Digest
    from spearmint.store.session import Session

_PLOTS = (
    "best_value", "importance", "loss_curves", "parallel_coordinates", "pareto_front", "regions",
    "slices",
)  # fmt: skip
REPORT_FILES = ("index.html", *(f"{name}.png" for name in _PLOTS))
"""The names of all files that a report can contain."""


def write_report(
    sessions: Sequence[Session], folder: Path, *, on_region: Callable[[str], object] = str
) -> Path:
    """Write ``index.html`` and its plots into ``folder``; return the path of the page.

    For several regions, the page compares them and links to a page for each region, in a folder
    with its name. The search is only read, and can be running. Each file is replaced by a rename,
    the page last. Plots of an earlier report that this report does not have are removed.

    Args:
        sessions: One search, or one session for each region.
        folder: Target folder; created if it does not exist.
        on_region: Called before each region, with a line of progress.

    Raises:
        InputError: The extra ``report`` is not installed, or ``folder`` cannot be written.
        StorageError: The trials cannot be read.
    """
    require_libraries()
    from spearmint.html_report.contents import read_digest

    digests = [read_digest(session) for session in sessions]
    if len(digests) == 1:
        return _write_search(digests[0], folder)
    for i, digest in enumerate(digests, 1):
        on_region(f"region {i} of {len(digests)}: {digest.experiment.region}")
        _write_search(digest, folder / digest.experiment.region)
    return _write_regions(digests, folder)


def _write_search(digest: Digest, folder: Path) -> Path:
    from spearmint.html_report.contents import pictures
    from spearmint.html_report.page import render

    drawn = pictures(digest)
    return _write(folder, drawn, render(digest, drawn, folder=folder))


def _write_regions(digests: Sequence[Digest], folder: Path) -> Path:
    from spearmint.html_report.contents import pictures_of_regions
    from spearmint.html_report.page import render_regions

    drawn = pictures_of_regions(digests)
    links = [f"{digest.experiment.region}/index.html" for digest in digests]
    return _write(folder, drawn, render_regions(digests, drawn, links))


def _write(folder: Path, pictures: Sequence[Picture], text: str) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            _put(folder / picture.file, picture.png)
        page = folder / "index.html"
        _put(page, text.encode("utf-8", errors="replace"))
    except OSError as error:
        raise InputError(
            f"cannot write the report to {folder}: {error.strerror or error}",
            "Choose another folder with --output.",
        ) from error
    return page


def _put(path: Path, content: bytes | None) -> None:
    """Replace the file at ``path`` by a rename; None removes the file."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
