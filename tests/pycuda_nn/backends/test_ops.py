from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycuda_nn.backends.numpy import ops
from pycuda_nn.backends.numpy.buffers import loss_of
from pycuda_nn.protocols import AdamHyper, SgdHyper

RNG = np.random.default_rng(0)
STEPS = [(RNG.normal(size=50), rate) for rate in (0.1, 0.05, 0.2, 0.01)]


def test_sgd_is_its_formula() -> None:
    p, v = np.ones(50), np.zeros(50)
    want_p, want_v = p.copy(), v.copy()
    for g, lr in STEPS:
        ops.sgd_step(p, g.copy(), v, SgdHyper(momentum=0.9, nesterov=False), lr, np.empty(50))
        want_v = 0.9 * want_v + g
        want_p = want_p - lr * want_v
    np.testing.assert_allclose(p, want_p, rtol=1e-12)
    np.testing.assert_allclose(v, want_v, rtol=1e-12)


def test_nesterov_is_its_formula() -> None:
    p, v = np.ones(50), np.zeros(50)
    want_p, want_v = p.copy(), v.copy()
    for g, lr in STEPS:
        ops.sgd_step(p, g.copy(), v, SgdHyper(momentum=0.9, nesterov=True), lr, np.empty(50))
        want_v = 0.9 * want_v + g
        want_p = want_p - lr * (g + 0.9 * want_v)
    np.testing.assert_allclose(p, want_p, rtol=1e-12)


def test_adam_is_algorithm_1() -> None:
    """With eps inside the corrected root, as printed; the two forms differ by eps only."""
    p, m, v = np.ones(50), np.zeros(50), np.zeros(50)
    want, a, b = p.copy(), m.copy(), v.copy()
    b1, b2 = float(np.float32(0.9)), float(np.float32(0.999))
    hyper = AdamHyper(beta1=0.9, beta2=0.999, eps=1e-12)
    for t, (g, lr) in enumerate(STEPS, start=1):
        ops.adam_step(p, g.copy(), m, v, hyper, lr, t, np.empty(50))
        a, b = b1 * a + (1 - b1) * g, b2 * b + (1 - b2) * g * g
        want = want - lr * (a / (1 - b1**t)) / (np.sqrt(b / (1 - b2**t)) + 1e-12)
    np.testing.assert_allclose(p, want, rtol=1e-8)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(scale=st.sampled_from([1.0, 100.0, 1e4]), rows=st.integers(1, 9), k=st.integers(2, 6))
def test_softmax_loss_is_its_formula_and_cannot_overflow(scale: float, rows: int, k: int) -> None:
    z = (np.random.default_rng(rows).normal(size=(rows, k)) * scale).astype(np.float32)
    y = (np.arange(rows) % k).astype(np.int32)
    exact = z.astype(np.float64)
    logs = exact - np.logaddexp.reduce(exact, axis=1, keepdims=True)
    want = -logs[np.arange(rows), y].mean()
    onehot = np.eye(k)[y]
    loss = loss_of("softmax", rows, k, np.float32)(z, y)
    assert loss == pytest.approx(want, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(z, (np.exp(logs) - onehot) / rows, atol=1e-6)


@pytest.mark.parametrize("value", [-1e4, -3.0, 0.0, 3.0, 1e4])
@pytest.mark.parametrize("label", [0, 1])
def test_logistic_loss_is_its_formula_and_cannot_overflow(value: float, label: int) -> None:
    z = np.full((4, 1), value, dtype=np.float32)
    want = np.logaddexp(0.0, value) - label * value
    loss = ops.logistic_xent(z, np.full(4, label, dtype=np.int32), np.empty_like(z))
    assert loss == pytest.approx(want, rel=1e-6)
    p = 1 / (1 + math.exp(-value)) if value > -500 else 0.0
    np.testing.assert_allclose(z, (p - label) / 4, atol=1e-7)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_the_loss_of_sure_rows_is_exact_and_never_negative(loss: str) -> None:
    rows, rng = 1024, np.random.default_rng(0)
    for sure in (10.0, 300.0):
        y = rng.integers(0, 2, rows, dtype=np.int32)
        margin = sure * (1 + rng.random(rows, dtype=np.float32))
        z = np.where(y == 1, margin, -margin)[:, None]
        if loss == "softmax":
            z = np.concatenate([-z / 2, z / 2], axis=1)
        got = loss_of(loss, rows, z.shape[1], np.float32)(z, y)
        want = np.log1p(np.exp(-margin.astype(np.float64))).mean()
        assert 0 <= got == pytest.approx(want, rel=0.01, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("relu", lambda z: np.maximum(z, 0)),
        ("tanh", np.tanh),
        ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
    ],
)
def test_activations(name: str, formula: object) -> None:
    z = np.linspace(-8, 8, 30).reshape(5, 6)
    bias = np.arange(6.0) / 10
    want = formula(z + bias)  # type: ignore[operator]
    ops.BIAS_ACTIVATION[name](z, bias)
    np.testing.assert_allclose(z, want, rtol=1e-9, atol=1e-12)


def test_gather_copies_the_rows_in_order() -> None:
    x, out = np.arange(12.0).reshape(6, 2), np.empty((3, 2))
    ops.gather(x, np.array([5, 0, 5]), out)
    np.testing.assert_array_equal(out, [[10, 11], [0, 1], [10, 11]])
