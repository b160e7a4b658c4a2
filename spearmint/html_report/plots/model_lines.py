"""What a Gaussian process predicts along each variable, through the best trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spearmint.gp import Dimension, Space
from spearmint.gp.predict import predict
from spearmint.html_report.plots.digest import Digest, Element
from spearmint.html_report.plots.scale import Array, places_of
from spearmint.model import Kind, Trial

FEWEST = 8
"""Minimum number of different heights for a model."""

_POINTS = 61  # on each line


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The prediction where one variable changes and the others stay those of the best trial.

    Attributes:
        across: Positions on the axis of the variable, in [0, 1], shape ``(m,)``.
        mean: Expected heights in the plot, shape ``(m,)``.
        spread: Two standard deviations of the heights, shape ``(m,)``.
        joined: Whether there are values between two neighbours; False for choices.
    """

    across: Array
    mean: Array
    spread: Array
    joined: bool


def model_lines(digest: Digest, elements: Sequence[Element], heights: Array) -> list[Line | None]:
    """Return the line of each of the ``elements``; empty with fewer than 8 different heights.

    The model is fitted to the heights, so that it follows the scale of the plot. A variable that is
    inactive in the best trial has no line, nor has one that decides which others are active.

    Args:
        heights: Heights of ``digest.finite`` in the plot, shape ``(n,)``.
    """
    if len(np.unique(heights)) < FEWEST:
        return []
    every = digest.elements()
    points = np.stack([_coordinates(element, digest.finite) for element in every], axis=1)
    space = Space(tuple(_dimension(element) for element in every))
    parents = {each.parent for element in every for each in element.variable.when}
    best = digest.finite[0]
    drawn = [e for e in elements if e.of(best) is not None and e.variable.name not in parents]
    if not drawn:
        return []
    ends, rows = [_ends(element) for element in drawn], []
    for element, across in zip(drawn, ends, strict=True):
        at = np.repeat(points[:1], len(across), axis=0)
        at[:, every.index(element)] = across
        rows.append(at)
    sign = -1.0 if digest.experiment.maximize else 1.0
    mean, deviation = predict(space, points, sign * heights, np.concatenate(rows))
    centre, unit = float(heights.mean()), float(heights.std())
    cuts = np.cumsum([len(across) for across in ends])[:-1]
    lines = {
        element: Line(
            across=_places(element, across),
            mean=centre + sign * unit * middle,
            spread=2.0 * unit * width,
            joined=element.variable.kind is not Kind.ENUM,
        )
        for element, across, middle, width in zip(
            drawn, ends, np.split(mean, cuts), np.split(deviation, cuts), strict=True
        )
    }
    return [lines.get(element) for element in elements]


def _dimension(element: Element) -> Dimension:
    return Dimension(n_choices=len(element.variable.options))


def _coordinates(element: Element, trials: Sequence[Trial]) -> Array:
    """Return the coordinates of trials: the position on the axis, or the index of the choice."""
    variable, values = element.variable, [element.of(trial) for trial in trials]
    if variable.kind is Kind.ENUM:
        indices = [variable.options.index(str(v)) if v is not None else 0 for v in values]
        return np.array(indices, float)
    # An inactive variable has the same coordinate in all trials.
    return np.nan_to_num(places_of(variable, values), nan=0.5)


def _ends(element: Element) -> Array:
    """Return the coordinates where the line is drawn."""
    choices = len(element.variable.options)
    return np.arange(float(choices)) if choices else np.linspace(0.0, 1.0, _POINTS)


def _places(element: Element, coordinates: Array) -> Array:
    choices = len(element.variable.options)
    return (coordinates + 0.5) / choices if choices else coordinates
