from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycuda_nn.layers import LOSSES, Logistic, Memory, Softmax


@settings(max_examples=50, deadline=None, derandomize=True)
@given(scale=st.sampled_from([1.0, 100.0, 1e4]), rows=st.integers(1, 9), k=st.integers(2, 6))
def test_softmax_loss_is_its_formula_and_cannot_overflow(scale: float, rows: int, k: int) -> None:
    z = (np.random.default_rng(rows).normal(size=(rows, k)) * scale).astype(np.float32)
    y = (np.arange(rows) % k).astype(np.int32)
    exact = z.astype(np.float64)
    logs = exact - np.logaddexp.reduce(exact, axis=1, keepdims=True)
    want = -logs[np.arange(rows), y].mean()
    onehot = np.eye(k)[y]
    loss = Softmax().gradient(z, y, Memory(np.float32))
    assert loss == pytest.approx(want, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(z, (np.exp(logs) - onehot) / rows, atol=1e-6)


@pytest.mark.parametrize("value", [-1e4, -3.0, 0.0, 3.0, 1e4])
@pytest.mark.parametrize("label", [0, 1])
def test_logistic_loss_is_its_formula_and_cannot_overflow(value: float, label: int) -> None:
    z = np.full((4, 1), value, dtype=np.float32)
    want = np.logaddexp(0.0, value) - label * value
    loss = Logistic().gradient(z, np.full(4, label, dtype=np.int32), Memory(np.float32))
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
        got = LOSSES[loss].gradient(z, y, Memory(np.float32))
        want = np.log1p(np.exp(-margin.astype(np.float64))).mean()
        assert 0 <= got == pytest.approx(want, rel=0.01, abs=1e-8)
