"""All calls of jinja2: the page of a report as text."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2

from spearmint._version import __version__
from spearmint.formatting import TABLE_DIGITS, format_duration, format_value, plain
from spearmint.html_report.canvas import Plot
from spearmint.html_report.digest import Digest
from spearmint.model import Trial, TrialState, Value

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


def render(digest: Digest, pictures: Sequence[Picture]) -> str:
    """Return the page of one search, which loads no other file."""
    return _render("report.html", _context(digest, pictures))


def render_regions(digests: Sequence[Digest], pictures: Sequence[Picture]) -> str:
    """Return the page that compares regions; it only links to the pages of the regions."""
    first = digests[0]
    starts = [digest.started for digest in digests if digest.started]
    ends = [digest.ended for digest in digests if digest.ended]
    regions = [
        {
            "name": digest.experiment.region,
            "counts": _counts([digest]),
            "best": _row(digest.best, digest) if digest.best else {"params": {}},
        }
        for digest in digests
    ]
    context = {
        **_about(first),
        "region": "",
        "regions": regions,
        "counts": _counts(digests),
        "duration": format_duration(sum(digest.seconds for digest in digests)),
        "started": _moment(min(starts, default=None)),
        "ended": _moment(max(ends, default=None)),
        "pictures": pictures,
    }
    return _render("regions.html", context)


def _render(template: str, context: dict[str, Any]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spearmint.html_report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["plain"] = plain
    return environment.get_template(template).render(context)


def _context(digest: Digest, pictures: Sequence[Picture]) -> dict[str, Any]:
    broken = digest.in_state(TrialState.BROKEN)
    return {
        **_about(digest),
        "counts": _counts([digest]),
        "best": _row(digest.best, digest) if digest.best else None,
        "duration": format_duration(digest.seconds),
        "started": _moment(digest.started),
        "ended": _moment(digest.ended),
        "pictures": pictures,
        "rows": [_row(trial, digest) for trial in digest.ranked[:_BEST_ROWS]],
        "broken": broken[::-1][:_BROKEN_ROWS],
    }


def _about(digest: Digest) -> dict[str, Any]:
    """Return the properties of an experiment that every page shows."""
    experiment = digest.experiment
    return {
        "name": experiment.name,
        "region": experiment.region,
        "config": str(experiment.path),
        "goal": "maximise" if experiment.maximize else "minimise",
        "variables": experiment.variables,
        "elements": len(digest.elements()),
        "written": _moment(datetime.now()),
        "version": __version__,
    }


def _counts(digests: Sequence[Digest]) -> dict[str, int]:
    return {
        str(state): sum(len(digest.in_state(state)) for digest in digests) for state in TrialState
    }


def _row(trial: Trial, digest: Digest) -> dict[str, Any]:
    """Return the texts of a trial in a table."""
    return {
        "id": trial.id,
        "value": "" if trial.value is None else format_value(float(trial.value)),
        "seconds": "" if trial.seconds is None else f"{trial.seconds:.1f}",
        "params": {
            variable.name: _vector(trial.params[variable.name])
            for variable in digest.experiment.variables
        },
    }


def _vector(values: Sequence[Value]) -> str:
    return ", ".join(format_value(value, TABLE_DIGITS) for value in values)


def _moment(time: datetime | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M") if time is not None else ""
