"""The lines that a model predicts through the best trial."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from spearmint.html_report.plots import slices
from spearmint.html_report.plots.digest import Digest, number
from spearmint.html_report.plots.model_lines import FEWEST, Line, model_lines
from spearmint.model import Kind, Variable

SPACE = [
    Variable(name="lr", kind=Kind.FLOAT, low=1e-4, high=1.0, log=True),
    Variable(name="act", kind=Kind.ENUM, options=("relu", "tanh", "gelu")),
    Variable(name="unused", kind=Kind.INT, low=1.0, high=9.0),
]


def bowl(params: dict[str, Any]) -> float:
    """Lowest at lr = 0.01, and lower with relu; ``unused`` changes nothing."""
    away = (np.log10(params["lr"]) + 2.0) / 4.0
    return float(away**2 + {"relu": 0.0, "tanh": 0.2, "gelu": 0.1}[params["act"]])


def lines_of(search: Any) -> tuple[Digest, list[Line]]:
    session = search.session()
    digest = Digest.of(session.experiment, session.study.trials())
    heights = np.array([number(trial) for trial in digest.finite])
    return digest, model_lines(digest, digest.elements(), heights)


@pytest.mark.parametrize("maximize", [False, True])
def test_lines_follow_the_function(make_search: Any, maximize: bool) -> None:
    sign = -1.0 if maximize else 1.0
    search = make_search(SPACE, maximize=maximize)
    for _ in range(40):
        search.complete(lambda params: sign * bowl(params))

    _, (lr, act, unused) = lines_of(search)

    np.testing.assert_allclose(lr.mean, sign * (lr.across - 0.5) ** 2, atol=0.05)
    np.testing.assert_allclose(act.mean - act.mean[0], sign * np.array([0.0, 0.2, 0.1]), atol=0.05)
    np.testing.assert_allclose(act.across, [1 / 6, 3 / 6, 5 / 6])
    np.testing.assert_allclose(unused.mean, unused.mean[0], atol=0.03)
    assert [line.joined for line in (lr, act, unused)] == [True, False, True]


def test_the_band_is_wide_where_no_trial_is(make_search: Any) -> None:
    search = make_search([SPACE[0]])
    while len(search.trials) < 12:
        search.complete(bowl_of_lr)
        if search.trials[-1].params["lr"] > 0.01:
            search.trials.pop()
    _, (lr,) = lines_of(search)
    assert lr.spread[-1] > 5.0 * lr.spread[: len(lr.spread) // 2].max()


def bowl_of_lr(params: dict[str, Any]) -> float:
    return bowl({**params, "act": "relu"})


def test_few_trials_or_equal_values_have_no_line(make_search: Any) -> None:
    search = make_search(SPACE)
    for i in range(FEWEST - 1):
        search.complete(float(i))
    for _ in range(5):
        search.complete(1.0)
    digest, lines = lines_of(search)
    assert lines == []
    assert "Gaussian process" not in slices.plot(digest, digest.elements()).caption


def test_the_panels_show_the_lines(make_search: Any) -> None:
    search = make_search(SPACE)
    for _ in range(12):
        search.complete(bowl)
    digest, _ = lines_of(search)
    figure = Figure()
    plot = slices.plot(digest, digest.elements())
    assert plot.draw is not None

    plot.draw(figure)

    lr, act, _ = figure.axes
    assert any(len(line.get_xdata()) == 61 for line in lr.lines)
    assert len(act.containers) == 1
    assert "Gaussian process" in plot.caption
