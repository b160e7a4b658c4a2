"""Variables whose best values lie on a bound of their range."""

from __future__ import annotations

from collections.abc import Sequence

from spearmint.formatting import TABLE_DIGITS, format_value
from spearmint.html_report.plots.digest import Digest, Element
from spearmint.html_report.plots.scale import variable_scale
from spearmint.model import Kind, Trial

_FEWEST = 10  # complete trials
_SHARE = 10  # one of this many trials counts as good
_FEWEST_GOOD = 3
_NEAR = 0.02  # of the axis


def at_bounds(digest: Digest) -> list[str]:
    """Return a sentence for each number that the best trial and most good trials have at a bound.

    The best tenth of the trials counts as good, and at least three.
    """
    if len(digest.finite) < _FEWEST:
        return []
    good = [trial for trial in digest.finite if trial.is_feasible]
    good = good[: max(_FEWEST_GOOD, len(good) // _SHARE)]
    found = []
    for element in digest.elements():
        bound = _common_bound(element, good)
        if bound:
            found.append(f"{element.name} is at its {bound}")
    return found


def _common_bound(element: Element, good: Sequence[Trial]) -> str:
    """Return the bound of the first and of most of the trials, or an empty text."""
    bounds = [_bound(element, trial) for trial in good]
    return bounds[0] if 2 * bounds.count(bounds[0]) > len(bounds) else ""


def _bound(element: Element, trial: Trial) -> str:
    variable, value = element.variable, element.of(trial)
    if value is None or variable.kind is Kind.ENUM or not variable.high > variable.low:
        return ""
    if variable.kind is Kind.INT:
        place = {variable.low: 0.0, variable.high: 1.0}.get(float(value), 0.5)
    else:
        place = float(variable_scale(variable).position([value])[0])
    if place <= _NEAR:
        return f"lower bound {format_value(variable.low, TABLE_DIGITS)}"
    if place >= 1.0 - _NEAR:
        return f"upper bound {format_value(variable.high, TABLE_DIGITS)}"
    return ""
