from __future__ import annotations

import math

import numpy as np
import pytest

from pycuda_nn.cuda.elementwise.single import SINGLE
from pycuda_nn.errors import ShapeError
from pycuda_nn.expression import Expression, Input, Scalar, program
from pycuda_nn.expression.operations import exp, ln, relu, sigmoid, sqr, tanh, threshold

X, Y = Input("x"), Input("y")


def softplus(a: float, b: float, name: str = "x") -> Expression:
    return ln(exp(Input(name) * a + b) + 1.0)


def test_another_number_and_another_name_are_the_same_text() -> None:
    first, other = program(softplus(0.5, 0.25)), program(softplus(3.0, -7e30, name="weights"))
    assert first.function() == other.function()
    assert first.structure == other.structure
    assert first.inputs != other.inputs


def test_equal_numbers_are_two_arguments() -> None:
    """Otherwise x * 2 + 2 and x * 2 + 3 would need different kernels."""
    assert program(X * 2.0 + 2.0).function() == program(X * 2.0 + 3.0).function()


def test_another_structure_is_another_text() -> None:
    texts = [X * Y, Y * X * X, X - Y, X + Y, X + 1.0, 1.0 - X, X - 1.0, sqr(X) * Y]
    assert len({program(expression).function() for expression in texts}) == len(texts)


def test_what_is_used_twice_is_computed_once() -> None:
    wave = exp(X)
    assert program(wave * wave + exp(X)).function().count("expf") == 1


def test_a_long_chain_and_a_deep_diamond_take_no_time() -> None:
    long = wide = X
    for _ in range(5000):
        long = long + Y
    for _ in range(200):
        wide = wide * wide
    assert len(program(long).steps) == 5000
    assert len(program(wide).steps) == 200


def test_numbers_are_rounded_as_the_kernel_rounds_them() -> None:
    made = program(X * 0.1 + Scalar("c") + 1e300)
    assert made.numbers({"c": 2}) == (float(np.float32(0.1)), 2.0, math.inf)
    assert math.isnan(program(X * math.nan).numbers({})[0])


def test_a_named_scalar_is_one_argument() -> None:
    made = program((X + Scalar("c")) * Scalar("c") * Scalar("d"))
    assert [scalar.name for scalar in made.scalars] == ["c", "d"]
    assert made.evaluate(x=np.float32([1]), c=2, d=3).tolist() == [18]


def test_the_twin_stays_in_the_type_of_its_inputs() -> None:
    x = np.linspace(-2, 2, 9)
    for kind in (np.float32, np.float64):
        for name, expression in SINGLE.items():
            values = dict.fromkeys(("x", "y", "a", "delta"), x.astype(kind))
            made = program(expression).evaluate(**values, c=0.1, level=0.3, value=0.7)
            assert made.dtype == kind, name


def test_numpy_scalars_leave_the_operators_to_the_expression() -> None:
    made = program(np.float32(2) * X - np.int64(3))
    assert made.evaluate(x=np.float32([1, 5])).tolist() == [-1, 7]


@pytest.mark.parametrize(
    ("expression", "formula"),
    [
        (2 - X, lambda x: 2 - x),
        (2 / X, lambda x: 2 / x),
        (X / 2, lambda x: x / 2),
        (2 + X, lambda x: 2 + x),
        (-X, lambda x: -x),
        (abs(X), abs),
        (X, lambda x: x),
        (sigmoid(X) - relu(X) * tanh(X), lambda x: 1 / (1 + np.exp(-x)) - (x > 0) * x * np.tanh(x)),
        (threshold(X, 1.0), lambda x: np.maximum(x, 1.0)),
        (threshold(X, 1.0, -9.0), lambda x: np.where(x < 1.0, -9.0, x)),
        (softplus(0.5, 0.25), lambda x: np.logaddexp(0, 0.5 * x + 0.25)),
    ],
)
def test_operators_and_functions(expression: Expression, formula) -> None:
    x = np.array([-3.0, -0.5, 0.75, 1.0, 4.0])
    np.testing.assert_allclose(program(expression).evaluate(x=x), formula(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: program(Scalar("c") * 2.0), "\n.*Input"),
        (lambda: program(X * Scalar("x")), "^'x' "),
        (lambda: X * "2", r"^mul: .*\bstr\n"),
        (lambda: X + np.ones(3), r"^add: .*\bndarray\n"),
        (lambda: X * (1 + 2j), r"^mul: .*\bcomplex\n"),
        (lambda: program(Expression()), r"\bExpression\n"),
        (lambda: program(X * Scalar("c")).numbers({}), "scalar 'c' "),
        (lambda: program(X * Scalar("c")).numbers({"c": "2"}), r"scalar 'c' .*\bstr\n"),
    ],
)
def test_errors(make, facts: str) -> None:
    with pytest.raises(ShapeError, match=facts):
        make()
