from __future__ import annotations

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.errors import ConfigError
from pycuda_nn.expression import Expression, parse, program, text_of, traced
from pycuda_nn.expression.operations import maximum, sigmoid, sqr, where

X = np.linspace(-1.75, 2.25, 9)


def squared_often(x: Expression) -> Expression:
    for _ in range(50):
        x = x * x
    return x


def value(text: str) -> np.ndarray:
    return program(parse(text, ["x"]), inputs=["x"]).evaluate(x=X)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x * x + 2 * x - 1 / 4", X * X + 2 * X - 0.25),
        ("-x ** 2", -(X**2)),
        ("x ** -1 + x ** 3", 1 / X + X**3),
        ("2 * pi - e + x", 2 * np.pi - np.e + X),
        (" max(x, 0.5)\n", np.maximum(X, 0.5)),
        ("(x >= 0) - (x > 1)", 1.0 * (X >= 0) - (X > 1)),
        ("where(-1 < x < 1, x, +2)", np.where((X > -1) & (X < 1), X, 2)),
        ("sqrt(2) * x", np.sqrt(2) * X),
    ],
)
def test_a_text_means_what_it_means_in_python(text: str, want: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(value(text), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x *", "character"),
        ("sgimoid(x)", "'sigmoid'"),
        ("y + x", "'y'"),
        ("exp", "'exp'"),
        ("x.real", "'x.real'"),
        ("x[0]", "'x[0]'"),
        ("x and x", "'x and x'"),
        ("x if x else x", "not supported"),
        ("lambda: x", "not supported"),
        ("__import__('os').system('x')", "unknown function"),
        ("x + 'a'", "not a number"),
        ("x + True", "not a number"),
        ("x + 1j", "not a number"),
        ("x == 1", "Compare by"),
        ("x + 1e39", "float32"),
        ("x + 10 ** 10 ** 10", "float32"),
        ("x + 1 / 0", "float32"),
        ("x + sqrt(-1)", "float32"),
        ("max(x)", "2 arguments"),
        ("exp(x=x)", "1 argument"),
        ("maximum(x, 0)", "Write max(a, b)."),
        ("sqr(x)", "Write x ** 2."),
        ("x; x", "character"),
        ("", "character"),
        ("x" + " + x" * 200, "characters"),
        ("(" * 240 + "x" + ")" * 240, "invalid expression"),
        ("-" * 490 + "x", "nested"),
    ],
)
def test_a_wrong_text_is_an_error_that_names_its_part(text: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, ["x"])
    assert part in f"{caught.value.what} {caught.value.fix}"


def test_a_message_is_one_line_of_printable_text() -> None:
    for text in ("x\n+\x1b[31m1 1", "y + " + "x + " * 100 + "x"):
        with pytest.raises(ConfigError) as caught:
            parse(text, ["x"])
        assert caught.value.what.isprintable()
        assert len(caught.value.what) < 250


def test_text_of_an_expression_is_read_back_as_it_was() -> None:
    for text in ("x * sigmoid(-1.5 * x)", "where(x <= 0, sqr_(x), max(x, 2)) ** 0.5"):
        text = text.replace("sqr_(x)", "x ** 2")
        found = parse(text_of(parse(text, ["x"])), ["x"])
        with np.errstate(all="ignore"):
            got = program(found).evaluate(x=X)
            np.testing.assert_array_equal(got, value(text))


def test_a_python_function_becomes_text() -> None:
    assert value(nn.formula(lambda x: where(x < 0, -x, sqr(x)))).tolist() == [
        1.75, 1.25, 0.75, 0.25, 0.0625, 0.5625, 1.5625, 3.0625, 5.0625,
    ]  # fmt: skip
    assert traced(lambda z, y: maximum(sigmoid(z), y), ["z", "y"]) == "max(sigmoid(z), y)"


def test_a_function_that_is_not_an_expression_is_an_error() -> None:
    for function, part in (
        (lambda x: 1.0, "float"),
        (lambda x: abs(x) if x > 0 else x, "where"),
        (lambda x: np.exp(x), "TypeError"),
        (lambda q: q, "Name its parameters"),
        (lambda: 1.0, "Name its parameters"),
        (lambda x: where(x == 0, 1, x), "Compare by <"),
        (lambda x: x * float("inf"), "the number inf"),
        ("x * 2", "not a Python function"),
        (squared_often, "characters"),
    ):
        with pytest.raises(nn.PycudaNNError) as caught:
            nn.formula(function)  # type: ignore[arg-type]
        assert part in f"{caught.value.what} {caught.value.fix}"
