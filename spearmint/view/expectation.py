"""What a model expects of the recommended trial, in words."""

from __future__ import annotations

import math

from spearmint.choosers.recommendation import Estimate
from spearmint.formatting import format_value
from spearmint.store.recommending import Recommendation


def expectation(found: Recommendation, *, maximize: bool) -> list[str]:
    """Return lines on the expected value and the luckiest trial; none if there is no noise."""
    if found.expected is None or found.luckiest_expected is None:
        return []
    noise = _digits(found.expected.noise_sd, found.expected.noise_sd)
    lines = [f"expected: {_interval(found.expected)} (noise of one trial: ± {noise})"]
    if found.expected.trials > 1:
        mean = _digits(found.expected.mean, found.expected.sd)
        lines.append(f"{found.expected.trials} trials at this point, mean value: {mean}")
    luckiest, word = found.luckiest, "highest" if maximize else "lowest"
    if luckiest.id == found.trial.id:
        return [*lines, f"this is also the trial with the {word} value"]
    value = format_value(float(luckiest.value or 0.0))
    expected = _interval(found.luckiest_expected)
    if luckiest.params == found.trial.params:
        return [*lines, f"{word} value: {value}, trial {luckiest.id} at the same point"]
    return [*lines, f"{word} value: {value}, trial {luckiest.id} (expected: {expected})"]


def _interval(estimate: Estimate) -> str:
    """Return ``0.321 ± 0.012``, with two significant digits of the deviation."""
    mean = _digits(estimate.expected, estimate.sd)
    return f"{mean} ± {_digits(estimate.sd, estimate.sd)}"


def _digits(value: float, sd: float) -> str:
    """Return ``value`` with the digits that a deviation of ``sd`` leaves."""
    places = 1 - math.floor(math.log10(sd)) if sd > 0.0 else 6
    if 0 <= places <= 6:
        return f"{value:.{places}f}"
    return format_value(value, 3 if value == sd else 6)
