"""The content of the plots, without looking at pixels."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spearmint.conditions import Condition
from spearmint.html_report.plots import best_value, curves, importance, parallel, slices
from spearmint.html_report.plots.digest import Digest
from spearmint.model import Kind, Variable


def digest_of(search: Any) -> Digest:
    session = search.session()
    return Digest.of(session.experiment, session.study.trials())


@pytest.mark.parametrize("maximize", [False, True])
def test_running_best_follows_the_direction(make_search: Any, maximize: bool) -> None:
    search = make_search(maximize=maximize)
    for value in (3.0, 5.0, 2.0, 2.0, float("inf"), 9.0, 1.0):
        search.complete(value)

    steps = best_value.running_best(digest_of(search))

    assert steps == ([(1, 3.0), (2, 5.0), (6, 9.0)] if maximize else [(1, 3.0), (3, 2.0), (7, 1.0)])


def test_best_value_shows_every_trial_and_the_broken_ones(make_search: Any) -> None:
    search = make_search()
    for value in (1.0, 2.0, float("inf"), 3.0):
        search.complete(value)
    search.broken()
    plot = best_value.plot(digest_of(search))
    figure = Figure()
    assert plot.draw is not None

    plot.draw(figure)

    lines = {str(line.get_label()): line for line in figure.axes[0].lines}
    assert list(lines["trial"].get_xdata()) == [1.0, 2.0, 4.0]
    assert list(lines["broken (1)"].get_xdata()) == [5]
    (outlier,) = (line for name, line in lines.items() if re.fullmatch(r"(?!broken).*\(1\)", name))
    assert list(outlier.get_xdata()) == [3.0]


def test_pruned_trials_are_at_their_last_report(make_search: Any) -> None:
    search = make_search()
    for value in (1.0, 2.0, 3.0):
        search.complete(value)
    search.pruned({1: 9.0, 2: 2.0})
    search.pruned({})
    search.pruned({1: 2.0, 2: float("nan")})
    plot = best_value.plot(digest_of(search))
    figure = Figure()
    assert plot.draw is not None

    plot.draw(figure)

    lines = {str(line.get_label()): line for line in figure.axes[0].lines}
    crosses = lines["pruned (2)"]
    assert list(crosses.get_xdata()) == [4, 6]
    assert list(crosses.get_ydata()) == [0.5, 0.5]
    assert "runed" in plot.caption


def test_parallel_draws_the_best_last_and_not_too_many(make_search: Any) -> None:
    search = make_search()
    for i in range(1000):
        search.complete(float(i))
    digest = digest_of(search)
    lines = parallel.chosen_lines(digest.finite)
    assert len(lines) == 200
    assert [line.value for line in lines[:100]] == [float(i) for i in range(100)]
    assert lines[-1].value == 999.0
    plot = parallel.plot(digest, digest.elements())
    figure = Figure()
    assert plot.draw is not None

    plot.draw(figure)

    heights = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) == 6]
    assert len(heights) == 200
    assert heights[-1][-1] == 0.0  # the last point is the value of the best trial
    assert heights[0][-1] == 1.0


@pytest.mark.parametrize("panels", [1, 2, 3, 4])
@pytest.mark.parametrize("options", [2, 3, 5])
@pytest.mark.parametrize("letters", [4, 8, 13])
def test_choices_of_a_slice_do_not_run_into_each_other(
    make_search: Any, panels: int, options: int, letters: int
) -> None:
    choices = tuple(f"{i}{'mean_error_of_it'[: letters - 1]}" for i in range(options))
    search = make_search(
        [Variable(name=f"v{i}", kind=Kind.ENUM, options=choices) for i in range(panels)]
    )
    for value in (1.0, 2.0, 3.0):
        search.complete(value)
    digest = digest_of(search)
    plot = slices.plot(digest, digest.elements())
    figure = Figure(figsize=plot.size_in, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    assert plot.draw is not None

    plot.draw(figure)
    canvas.draw()

    for axes in figure.axes:
        texts = [text for text in axes.get_xticklabels() if text.get_rotation() == 0.0]
        extents = [text.get_window_extent() for text in texts]
        for left, right in pairwise(extents):
            assert left.x1 < right.x0


@pytest.mark.parametrize(("maximize", "first"), [(False, "units"), (True, "X[1]")])
def test_importance_is_about_good_trials(make_search: Any, maximize: bool, first: str) -> None:
    search = make_search(maximize=maximize)
    for _ in range(200):
        search.complete(lambda flat: (flat["X[1]"] > 0.9) - (flat["units"] == 3))

    weights = importance.evaluate(digest_of(search))

    assert weights.order[0].name == first
    assert weights.shares[0] > 0.5
    assert sum(weights.shares) == pytest.approx(1.0)
    assert {element.name for element in weights.order} == {
        "lr", "units", "optimizer", "X[0]", "X[1]",
    }  # fmt: skip


def test_importance_explains_its_absence(make_search: Any) -> None:
    search = make_search()
    for _ in range(12):
        search.complete(1.0)
    weights = importance.evaluate(digest_of(search))
    assert weights.nothing
    assert weights.nothing in importance.plot(weights).caption
    assert "12" not in weights.nothing, "the reason is not the number of trials"


def test_importance_compares_dimensions_that_all_trials_have(make_search: Any) -> None:
    condition = Condition("model", ("svm",))
    model = Variable(name="model", kind=Kind.ENUM, options=("svm", "forest"))
    c, d = (
        Variable(name=name, kind=Kind.FLOAT, low=0.0, high=1.0, when=(condition,)) for name in "cd"
    )
    search = make_search([model, c, d])
    for i in range(12):
        search.complete(float(i))
    reason = importance.evaluate(digest_of(search)).nothing
    assert reason.startswith("Fewer than two dimensions are active in all trials")

    search = make_search([replace(model, options=("svm",)), c, d])
    for _ in range(60):
        search.complete(lambda flat: flat["c"])
    assert importance.evaluate(digest_of(search)).order[0].name == "c"


def test_curves_name_the_five_best(make_search: Any) -> None:
    search = make_search()
    for i in range(8):
        search.complete(float(8 - i), {step: 1.0 + i / (1 + step) for step in range(5)})
    search.complete(0.0)  # the best, but it reported nothing
    plot = curves.plot(digest_of(search))
    figure = Figure()
    assert plot.draw is not None

    plot.draw(figure)

    legend = figure.axes[0].get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == [
        "trial 8: 1", "trial 7: 2", "trial 6: 3", "trial 5: 4", "trial 4: 5", "other trials (3)",
    ]  # fmt: skip


@pytest.mark.parametrize(("trials", "facts"), [(205, ""), (206, r"\b205 \w+ 206\b")])
def test_curves_say_how_many_are_drawn(make_search: Any, trials: int, facts: str) -> None:
    search = make_search()
    for i in range(trials):
        search.complete(float(i), {0: 1.0, 1: float(i)})
    plot = curves.plot(digest_of(search))
    figure = Figure()
    assert plot.draw is not None

    plot.draw(figure)

    assert len(figure.axes[0].lines) == 205
    assert re.search(facts, plot.caption)
    assert bool(facts) == any(letter.isdigit() for letter in plot.caption)


def test_a_curve_keeps_its_ends_and_drops_what_is_not_finite(make_search: Any) -> None:
    search = make_search()
    search.complete(1.0, {step: float(step) for step in range(5000)} | {5000: float("nan")})

    rows = curves.curve(digest_of(search).trials[0])

    assert len(rows) <= 500
    assert rows[-1] == (4999, 4999.0)
