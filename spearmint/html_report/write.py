"""Write the report of a search: read the trials, draw the plots, render the page.

The modules for plots and pages are imported only when a report is written.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spearmint.errors import InputError
from spearmint.trial.reporting import read_reports

if TYPE_CHECKING:
    from spearmint.html_report.canvas import Plot
    from spearmint.html_report.digest import Digest
    from spearmint.html_report.page import Picture
    from spearmint.layout import Layout
    from spearmint.model import Trial
    from spearmint.store.session import Session

_PLOTS = (
    "best_value", "importance", "loss_curves", "parallel_coordinates", "regions", "slices",
)  # fmt: skip
REPORT_FILES = ("index.html", *(f"{name}.png" for name in _PLOTS))
"""The names of all files that a report can contain."""

_LIBRARIES = ("jinja2", "matplotlib")


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
    _require_libraries()
    digests = [_read(session) for session in sessions]
    if len(digests) == 1:
        return _write_search(digests[0], folder)
    for i, digest in enumerate(digests, 1):
        on_region(f"region {i} of {len(digests)}: {digest.experiment.region}")
        _write_search(digest, folder / digest.experiment.region)
    return _write_regions(digests, folder)


def _write_search(digest: Digest, folder: Path) -> Path:
    from spearmint.html_report.page import render

    pictures = _pictures(digest)
    return _write(folder, pictures, render(digest, pictures))


def _write_regions(digests: Sequence[Digest], folder: Path) -> Path:
    from spearmint.html_report import regions
    from spearmint.html_report.page import render_regions

    pictures = _drawn([regions.plot(digests)])
    return _write(folder, pictures, render_regions(digests, pictures))


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


def _require_libraries() -> None:
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InputError(
                f"a report needs {name}: {error}",
                "Install the libraries for reports: pip install 'starmint[report]'",
            ) from error


def _read(session: Session) -> Digest:
    """Return the current state of the search."""
    from spearmint.html_report.digest import Digest

    trials = [_with_reports(trial, session.layout) for trial in session.study.trials()]
    started, ended = session.study.span()
    return Digest.of(session.experiment, trials, started=started, ended=ended)


def _with_reports(trial: Trial, layout: Layout) -> Trial:
    """Add the values that a running trial has reported so far, which the study does not store."""
    from spearmint.model import TrialState

    if trial.state is not TrialState.RUNNING or trial.reports:
        return trial
    return replace(trial, reports=read_reports(layout.folder(trial.id).reports))


def _pictures(digest: Digest) -> Sequence[Picture]:
    """Return all plots, drawn; a plot with nothing to show has a reason instead of a PNG."""
    from spearmint.html_report import best_value, curves, importance, parallel, slices

    weights = importance.evaluate(digest)
    plots = [
        best_value.plot(digest),
        parallel.plot(digest, weights.order),
        importance.plot(weights),
        slices.plot(digest, weights.order),
        curves.plot(digest),
    ]
    return _drawn(plots)


def _drawn(plots: Sequence[Plot]) -> list[Picture]:
    """Return the plots with their PNG files."""
    from spearmint.html_report import canvas
    from spearmint.html_report.page import Picture

    return [
        Picture(plot=plot, png=canvas.png(plot) if plot.draw is not None else None)
        for plot in plots
    ]


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
