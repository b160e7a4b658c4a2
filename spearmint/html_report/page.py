"""All calls of jinja2: the page of a report as text."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from spearmint._version import __version__
from spearmint.formatting import TABLE_DIGITS, constraint_text, format_duration, format_value, plain
from spearmint.html_report.bounds import at_bounds
from spearmint.html_report.plots.canvas import Plot
from spearmint.html_report.plots.digest import Digest
from spearmint.model import Experiment, Trial, TrialState, Value, Variable, leading
from spearmint.view.expectation import expectation
from spearmint.view.gpu_use import busy_text, gpu_uses, latest, summary_lines, summary_of

_BEST_ROWS = 20
_BROKEN_ROWS = 50  # each row contains up to 20 lines of output


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A plot and its PNG file; ``png`` is None if there is nothing to plot."""

    plot: Plot
    png: bytes | None

    @property
    def file(self) -> str:
        """Name of the file in the report's folder."""
        return f"{self.plot.name}.png"

    @property
    def uri(self) -> str:
        """The PNG as a data URI, to embed in the page."""
        return f"data:image/png;base64,{base64.b64encode(self.png or b'').decode('ascii')}"

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height in CSS pixels, at 96 pixels per inch."""
        width, height = self.plot.size_in
        return round(96 * width), round(96 * height)


def render(
    digest: Digest,
    pictures: Sequence[Picture],
    *,
    folder: Path | None = None,
    reload_s: int = 0,
) -> str:
    """Return the page of one search, which loads no other file.

    Args:
        digest: The search.
        pictures: Its plots.
        folder: Where the page will be, for links to the output of trials; None for no links.
        reload_s: Seconds after which a browser loads the page again; 0 for never.
    """
    return _render("report.html", _context(digest, pictures, folder), reload_s)


def render_regions(
    digests: Sequence[Digest],
    pictures: Sequence[Picture],
    links: Sequence[str],
    *,
    reload_s: int = 0,
) -> str:
    """Return the page that compares regions; it only links to the pages of the regions.

    Args:
        digests: The searches.
        pictures: Plots that compare them.
        links: URL of the page of each region.
        reload_s: Seconds after which a browser loads the page again; 0 for never.
    """
    starts = [digest.started for digest in digests if digest.started]
    ends = [digest.ended for digest in digests if digest.ended]
    regions = [
        {
            "name": digest.experiment.region,
            "link": link,
            "counts": _counts([digest]),
            "best": _row(digest.recommended, digest, None) if digest.recommended else None,
            "rung": _rung(digest),
            "front": len(digest.front),
        }
        for digest, link in zip(digests, links, strict=True)
    ]
    context = {
        **_about(digests[0]),
        "region": "",
        "regions": regions,
        "counts": _counts(digests),
        "duration": format_duration(sum(digest.seconds for digest in digests)),
        **_gpu(digests),
        "started": _moment(min(starts, default=None)),
        "ended": _moment(max(ends, default=None)),
        "pictures": pictures,
    }
    return _render("regions.html", context, reload_s)


def _render(template: str, context: dict[str, Any], reload_s: int) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spearmint.html_report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["plain"] = plain
    environment.filters["cell"] = _cell_class
    return environment.get_template(template).render(context, reload_s=reload_s)


def _context(digest: Digest, pictures: Sequence[Picture], folder: Path | None) -> dict[str, Any]:
    broken = digest.in_state(TrialState.BROKEN)
    rows = [_row(trial, digest, folder) for trial in _shown(digest)[:_BEST_ROWS]]
    return {
        **_about(digest),
        "counts": _counts([digest]),
        "best": _row(digest.recommended, digest, folder) if digest.recommended else None,
        "rung": _rung(digest),
        "expectation": _expectation(digest),
        "at_bounds": at_bounds(digest),
        "strategy": digest.strategy,
        "duration": format_duration(digest.seconds),
        **_gpu([digest]),
        "started": _moment(digest.started),
        "ended": _moment(digest.ended),
        "pictures": pictures,
        "rows": rows,
        "has_gpu_busy": any(row["gpu_busy"] for row in rows),
        "front": digest.front,
        "broken": [(trial, _link(digest, trial, folder)) for trial in broken[::-1][:_BROKEN_ROWS]],
    }


def _shown(digest: Digest) -> Sequence[Trial]:
    """Return the trials for the table, best first, or the front of several objectives."""
    return digest.ranked or leading(digest.trials, maximize=False)


def _about(digest: Digest) -> dict[str, Any]:
    """Return the properties of an experiment that every page shows."""
    experiment = digest.experiment
    return {
        "name": experiment.name,
        "region": experiment.region,
        "config": str(experiment.path),
        "quoted_config": shlex.quote(str(experiment.path)),
        "goal": _goal(experiment),
        "objectives": [goal.name for goal in experiment.objectives] if experiment.has_front else [],
        "variables": experiment.variables,
        "constraints": digest.constraints,
        "require": experiment.require,
        "elements": len(digest.elements()),
        "written": _moment(datetime.now()),
        "version": __version__,
    }


def _expectation(digest: Digest) -> str:
    """Return what a model expects of the recommended trial, in words; empty without noise."""
    if digest.recommendation is None:
        return ""
    return "; ".join(expectation(digest.recommendation, maximize=digest.experiment.maximize))


def _rung(digest: Digest) -> str:
    """Return where the recommended trial waits, ``27 of 81 epochs``; empty if it is complete."""
    fidelity, trial = digest.experiment.fidelity, digest.recommended
    if fidelity is None or trial is None or trial.state is TrialState.COMPLETE:
        return ""
    return fidelity.place(len(trial.rungs))


def _goal(experiment: Experiment) -> str:
    """Return ``minimise``, or ``minimise error, maximise speed`` for named objectives."""
    words = {True: "maximise", False: "minimise"}
    goals = [f"{words[goal.maximize]} {goal.name}" for goal in experiment.objectives]
    return ", ".join(goals) or words[experiment.maximize]


def _counts(digests: Sequence[Digest]) -> dict[str, int]:
    return {
        str(state): sum(len(digest.in_state(state)) for digest in digests) for state in TrialState
    }


def _gpu(digests: Sequence[Digest]) -> dict[str, Any]:
    """Return how busy the GPUs of the last trials were, as text, and what to do if they waited."""
    uses = [
        use
        for digest in digests
        if digest.layout is not None
        for use in gpu_uses(digest.layout, latest(digest.trials)).values()
    ]
    summary = summary_of(uses)
    lines = summary_lines(summary)
    return {
        "gpu_busy": busy_text(summary.busy) if summary is not None else "",
        "gpu_advice": lines[1:],
    }


def _gpu_busy(trial: Trial, digest: Digest) -> str:
    uses = gpu_uses(digest.layout, [trial]) if digest.layout is not None else {}
    share = uses.get(trial.id, {}).get("gpu_busy")
    return "" if share is None else busy_text(share)


def _link(digest: Digest, trial: Trial, folder: Path | None) -> str:
    """Return the relative URL of the trial's output file; empty without a file or a folder."""
    if folder is None or digest.layout is None:
        return ""
    output = digest.layout.log(trial.id)
    if not output.is_file():
        return ""
    return quote(os.path.relpath(output.resolve(), folder.resolve()))


def _row(trial: Trial, digest: Digest, folder: Path | None) -> dict[str, Any]:
    """Return the texts of a trial in a table, and the link to its output."""
    return {
        "id": trial.id,
        "output": _link(digest, trial, folder),
        "value": "" if trial.value is None else format_value(float(trial.value)),
        "objectives": {name: format_value(value) for name, value in trial.objectives.items()},
        "constraints": {name: constraint_text(trial, name) for name in digest.constraints},
        "seconds": "" if trial.seconds is None else f"{trial.seconds:.1f}",
        "gpu_busy": _gpu_busy(trial, digest),
        "params": {
            variable.name: _vector(trial.params.get(variable.name, ()))
            for variable in digest.experiment.variables
        },
    }


def _cell_class(variable: Variable) -> str:
    """Return the CSS class of the cells of a variable: a number on a phone stays in one line."""
    if variable.options:
        return "text"
    return "number" if variable.size == 1 else "numbers"


def _vector(values: Sequence[Value]) -> str:
    return ", ".join(format_value(value, TABLE_DIGITS) for value in values)


def _moment(time: datetime | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M") if time is not None else ""
