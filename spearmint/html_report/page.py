"""The door to jinja2: the page of a report as text."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2

from spearmint._version import __version__
from spearmint.html_report.canvas import Plot
from spearmint.html_report.digest import Digest
from spearmint.model import TABLE_DIGITS, Trial, TrialState, Value, format_value

_BEST_ROWS = 20
_BROKEN_ROWS = 50  # each carries up to 20 lines of output
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A plot and its PNG file; no PNG where there is nothing to show."""

    plot: Plot
    png: bytes | None

    @property
    def file(self) -> str:
        """Name of the file in the report's folder."""
        return f"{self.plot.name}.png"

    @property
    def uri(self) -> str:
        """The PNG inside of the page."""
        return f"data:image/png;base64,{base64.b64encode(self.png or b'').decode('ascii')}"

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height in CSS pixels, 96 an inch."""
        width, height = self.plot.size_in
        return round(96 * width), round(96 * height)


def render(digest: Digest, pictures: Sequence[Picture]) -> str:
    """Return the whole page; it refers to nothing outside of itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spearmint.html_report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["plain"] = plain
    return environment.get_template("report.html").render(_context(digest, pictures))


def _context(digest: Digest, pictures: Sequence[Picture]) -> dict[str, Any]:
    broken = digest.in_state(TrialState.BROKEN)
    experiment = digest.experiment
    return {
        "name": experiment.name,
        "config": str(experiment.path),
        "goal": "maximise" if experiment.maximize else "minimise",
        "variables": experiment.variables,
        "elements": len(digest.elements()),
        "counts": {str(state): len(digest.in_state(state)) for state in TrialState},
        "best": _row(digest.best, digest) if digest.best else None,
        "duration": duration(digest.seconds),
        "started": _moment(digest.started),
        "ended": _moment(digest.ended),
        "pictures": pictures,
        "rows": [_row(trial, digest) for trial in digest.ranked[:_BEST_ROWS]],
        "broken": broken[::-1][:_BROKEN_ROWS],
        "written": _moment(datetime.now()),
        "version": __version__,
    }


def _row(trial: Trial, digest: Digest) -> dict[str, Any]:
    """Return a trial in the texts of a table."""
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


def plain(text: str) -> str:
    """Return the output of a program without colours and control characters."""
    return _CONTROL.sub("\N{MIDDLE DOT}", _ANSI.sub("", text.replace("\r\n", "\n")))


def duration(seconds: float) -> str:
    """Return seconds as people say them: ``4.2 s``, ``3 min 5 s``, ``2 h 15 min``, ``3 d 4 h``."""
    if seconds < 59.95:  # what rounds to 60.0 is a minute
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part_size} {part}"
    return f"{whole // 60} min {whole % 60} s"


def _moment(time: datetime | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M") if time is not None else ""
