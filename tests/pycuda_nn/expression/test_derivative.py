from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycuda_nn.errors import ShapeError
from pycuda_nn.expression import Expression, Input, derivative, parse, program
from pycuda_nn.expression.operations import threshold
from pycuda_nn.layers.formulas import NAMED

STEP = 1e-6
FORMULAS = [
    *NAMED.values(),
    "x * tanh(log(1 + exp(x)))",
    "sin(x) * cos(2 * x) - x / (1 + x * x)",
    "(1 + x * x) ** 0.3 + 2 ** x",
    "(x * x + 1) ** (x / 3)",
    "max(x, 0.3) * min(x, 2 * x) + abs(x - 0.1)",
    "sqrt(x * x + 0.01) + log1p(x * x) + expm1(x / 5)",
    "where(x < 0.5, x ** 3, 1 / x ** 2) + (-1 < x <= 1) * x",
    "x * x * x * x + x - -x",
]


def slope(text: str, x: np.ndarray) -> np.ndarray:
    made = program(derivative(parse(text, ["x"]), "x"), inputs=["x"])
    return np.broadcast_to(made.evaluate(x=x), x.shape)


@pytest.mark.parametrize("text", FORMULAS)
def test_the_derivative_is_the_slope_of_central_differences(text: str) -> None:
    x = np.random.default_rng(0).normal(size=500) * 2
    value = program(parse(text, ["x"]), inputs=["x"])
    want = (value.evaluate(x=x + STEP) - value.evaluate(x=x - STEP)) / (2 * STEP)
    np.testing.assert_allclose(slope(text, x), want, rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("text", FORMULAS)
def test_numbers_are_the_same_in_float32(text: str) -> None:
    x = np.random.default_rng(1).normal(size=200) * 2
    got = slope(text, x.astype(np.float32))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, slope(text, x), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "at", "want"),
    [
        ("where(x > 0, x, exp(x) - 1)", 1e4, 1.0),  # exp overflows in the branch not chosen
        ("where(x > 0, sqrt(x), 0 * x)", -1.0, 0.0),  # sqrt has no slope there
        ("max(log(x), 0 - 5)", 0.0, 0.0),
        ("where(x > 0, log(x), x)", 0.0, 1.0),
    ],
)
def test_what_is_not_chosen_does_not_count(text: str, at: float, want: float) -> None:
    with np.errstate(all="ignore"):
        assert slope(text, np.array([at]))[0] == want


def test_a_value_that_does_not_depend_on_the_input_has_slope_0() -> None:
    found = derivative(parse("y * y", ["x", "y"]), "x")
    assert program(found, inputs=["x", "y"]).evaluate(x=np.ones(2), y=np.ones(2)) == 0.0


def test_an_operation_without_derivative_is_named() -> None:
    with pytest.raises(ShapeError, match="threshold"):
        derivative(threshold(Input("x"), 0.0), "x")


def test_a_chain_of_thousands_of_operations_has_a_derivative() -> None:
    found: Expression = Input("x")
    for _ in range(5000):
        found = found + 1.0
    assert program(derivative(found * found, "x")).evaluate(x=np.zeros(1)) == pytest.approx(1e4)


TEXTS = st.recursive(
    st.sampled_from(["x", "1.5", "-0.25", "pi"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["tanh", "sigmoid", "softplus", "sin"]), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(text=TEXTS)
def test_any_smooth_formula_has_the_slope_of_central_differences(text: str) -> None:
    x = np.linspace(-1.0, 1.0, 21)
    value = program(parse(text, ["x"]), inputs=["x"])
    want = np.broadcast_to(
        (value.evaluate(x=x + STEP) - value.evaluate(x=x - STEP)) / (2 * STEP), x.shape
    )
    scale = max(1.0, float(np.abs(want).max()), float(np.abs(value.evaluate(x=x)).max()))
    np.testing.assert_allclose(slope(text, x) / scale, want / scale, atol=1e-7)
