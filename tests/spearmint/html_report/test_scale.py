"""Positions of values on an axis, and its ticks."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spearmint.html_report.plots.scale import Scale, shorten, value_scale, variable_places
from spearmint.model import Kind, Variable

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_linear_log_and_categories() -> None:
    assert Scale(low=-1.0, high=3.0).position([-1.0, 0.0, 3.0]).tolist() == [0.0, 0.25, 1.0]
    log = Scale(low=1e-4, high=1.0, log=True)
    assert log.position([1e-4, 1e-2, 1.0]).tolist() == pytest.approx([0.0, 0.5, 1.0])
    options = Scale(options=("a", "b"))
    assert options.position(["b", "a"]).tolist() == [0.75, 0.25]


def test_infinite_values_lie_beyond_their_end() -> None:
    for scale in (Scale(low=1.0, high=2.0), Scale(low=1.0, high=2.0, log=True), Scale(low=1.0)):
        low, high = scale.position([-math.inf, math.inf])
        assert low < 0.0
        assert high > 1.0
        assert np.isfinite([low, high]).all()


def test_one_value_stands_in_the_middle() -> None:
    scale = value_scale([7.0, 7.0], maximize=False)
    assert scale.position([7.0]).tolist() == [0.5]
    assert scale.ticks() == [(0.5, "7")]


def test_ticks_are_round_and_named_shortly() -> None:
    assert [text for _, text in Scale(low=1e-5, high=1.0, log=True).ticks()] == [
        "1e-5", "0.0001", "0.001", "0.01", "0.1", "1",
    ]  # fmt: skip
    assert [text for _, text in Scale(low=0.0, high=0.8).ticks()] == [
        "0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
    ]
    assert Scale(low=1, high=3, integer=True).ticks() == [(0.0, "1"), (0.5, "2"), (1.0, "3")]
    assert [text for _, text in Scale(low=0.013, high=0.9, log=True).ticks()] == [
        "0.03", "0.1", "0.3",
    ]  # fmt: skip
    close = [text for _, text in Scale(low=1e9, high=1e9 + 1e-5).ticks()]
    assert close[0] == "1e9"
    assert len(set(close)) == len(close) > 2


def test_bad_values_far_off_do_not_squeeze_the_good_ones() -> None:
    values = [float(value) for value in range(100)]
    assert value_scale([*values, -5.0, 1e6], maximize=False).high == 99.0
    assert value_scale([*values, 1e6], maximize=False).low == 0.0
    assert value_scale([*values, -1e6], maximize=True).low == 0.0
    assert value_scale([*values, 1e6], maximize=True).high == 1e6


def test_log_where_it_shows_the_good_end() -> None:
    assert value_scale([0.01, 0.1, 1.0], maximize=False).log
    assert not value_scale([0.5, 0.7, 1.0], maximize=False).log
    assert not value_scale([0.01, 0.1, 1.0], maximize=True).log
    assert not value_scale([0.0, 0.1, 100.0], maximize=False).log


def test_trials_with_the_same_choice_lie_apart_but_near() -> None:
    variable = Variable(name="o", kind=Kind.ENUM, options=("a", "b"))
    places = variable_places(variable, ["a"] * 50)
    assert len(set(places.tolist())) == 50
    assert np.all(np.abs(places - 0.25) <= 0.1)


@given(values=st.lists(FINITE, max_size=20), maximize=st.booleans())
def test_any_values_have_places_and_ticks(values: list[float], maximize: bool) -> None:
    scale = value_scale(values, maximize=maximize)
    assert np.isfinite(scale.position([*values, sys.float_info.max, -sys.float_info.max])).all()
    if values:
        best = max(values) if maximize else min(values)
        assert -1e-9 <= scale.position([best])[0] <= 1.0 + 1e-9
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 20
    for place, text in ticks:
        assert -1e-6 <= place <= 1.0 + 1e-6
        assert len(text) < 16


def test_long_text_is_cut_in_the_middle() -> None:
    text = shorten("model/encoder/layers/dropout\n", 16)
    assert len(text) == 16
    assert text.startswith("model/enco")
    assert text.endswith("out·")
    assert shorten("lr", 16) == "lr"
