"""Durations on the command line: ``90``, ``15m``, ``2h``."""

from __future__ import annotations

import re

import click

_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[float]):
    """Seconds above 0, or a number with s, m, h or d; converts to seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return ``value`` in seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
        if match is None or float(match.group(1)) <= 0:
            self.fail(f"{value!r} is no duration; expected 90, 90s, 15m, 2h or 1d", param, ctx)
        return float(match.group(1)) * _UNITS_S[match.group(2)]
