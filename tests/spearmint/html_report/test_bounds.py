"""Which variables have their best values at a bound."""

from __future__ import annotations

from typing import Any

import pytest

from spearmint.html_report.bounds import at_bounds
from spearmint.html_report.plots.digest import Digest
from spearmint.model import Kind, Variable

LR = Variable(name="lr", kind=Kind.FLOAT, low=1e-4, high=0.1, log=True)
LAYERS = Variable(name="layers", kind=Kind.INT, low=1.0, high=4.0)
ACT = Variable(name="act", kind=Kind.ENUM, options=("relu", "tanh"))


def found(make_search: Any, points: list[dict[str, Any]], **options: Any) -> list[str]:
    """Return the sentences for a search whose trials have these points, the best first."""
    search = make_search([LR, LAYERS, ACT], **options)
    sign = -1.0 if options.get("maximize") else 1.0
    for i, point in enumerate(points):
        search.complete(sign * float(i))
        search.trials[-1].params.update({"lr": 0.003, "layers": 2, "act": "relu"} | point)
    session = search.session()
    return at_bounds(Digest.of(session.experiment, session.study.trials()))


@pytest.mark.parametrize("maximize", [False, True])
def test_the_bound_of_most_good_trials_is_named(make_search: Any, maximize: bool) -> None:
    points = [{"lr": 0.0999}, {"lr": 0.003}, {"lr": 0.1}, *[{}] * 9]
    assert found(make_search, points, maximize=maximize) == ["lr is at its upper bound 0.1"]


def test_a_lower_bound_of_an_integer_is_exact(make_search: Any) -> None:
    one = [{"layers": 1}] * 3
    assert found(make_search, [*one, *[{}] * 9]) == ["layers is at its lower bound 1"]


@pytest.mark.parametrize(
    "points",
    [
        pytest.param([{"lr": 0.1}, *[{}] * 11], id="the best trial alone"),
        pytest.param([{}, {"lr": 0.1}, {"lr": 0.1}, *[{}] * 9], id="all but the best trial"),
        pytest.param([{"lr": 0.1}, {"lr": 1e-4}, {}, *[{}] * 9], id="one at each end"),
        pytest.param([{"lr": 0.08}] * 12, id="near"),
        pytest.param([{"lr": 0.1}] * 9, id="too few trials"),
        pytest.param([{"act": "tanh"}] * 12, id="a choice has no bound"),
    ],
)
def test_no_bound_is_named(make_search: Any, points: list[dict[str, Any]]) -> None:
    assert found(make_search, points) == []
