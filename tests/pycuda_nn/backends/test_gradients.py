"""Compare the gradient of a step with finite differences of its loss, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pycuda_nn.backends.numpy.session import NumpySession
from pycuda_nn.layers import ACTIVATIONS, LOSSES
from pycuda_nn.network import Network
from pycuda_nn.protocols import SgdHyper, Split, TrainingRecipe


def session_for(
    sizes: tuple[int, ...], activation: str, loss: str, rows: int, dropout: float, seed: int
) -> NumpySession:
    rng = np.random.default_rng(seed)
    sizes = (*sizes[:-1], 1) if loss == "logistic" else sizes
    x = rng.normal(size=(rows, sizes[0]))
    if loss == "squared":
        y = rng.normal(size=(rows, sizes[-1]))
    else:
        y = rng.integers(0, 2 if loss == "logistic" else sizes[-1], rows).astype(np.int32)
    network = Network.from_sizes(sizes, activation=activation, loss=loss, dropout=dropout)
    hyper = SgdHyper(momentum=0.0, nesterov=False)
    recipe = TrainingRecipe(optimizer=hyper, batch_size=rows, l2=0.0, seed=seed)
    params = rng.normal(size=network.n_params) * 0.7
    return NumpySession(network, recipe, {"train": Split(x=x, y=y)}, params, np.float64)


def finite_difference(session: NumpySession, rows: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Return central differences; the step does not advance, so the dropout mask stays the same."""
    params, out = session._params, np.empty(session._params.size)
    for i in range(params.size):
        kept = params[i]
        params[i] = kept + h
        above = session.gradient(rows)
        params[i] = kept - h
        below = session.gradient(rows)
        params[i] = kept
        out[i] = (above - below) / (2 * h)
    return out


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5).map(tuple),
    activation=st.sampled_from(list(ACTIVATIONS)),
    loss=st.sampled_from(list(LOSSES)),
    rows=st.integers(1, 7),
    dropout=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_gradient_is_the_slope_of_the_loss(
    sizes: tuple[int, ...], activation: str, loss: str, rows: int, dropout: float, seed: int
) -> None:
    session = session_for(sizes, activation, loss, rows, dropout, seed)
    order = np.random.default_rng(seed).permutation(rows)
    session.gradient(order)
    got = session.grad()
    want = finite_difference(session, order)
    near_kink = activation == "relu" and np.abs(got - want).max() > 1e-5
    if near_kink:  # a pre-activation within h of 0 has two slopes: use a smaller h
        want = finite_difference(session, order, h=1e-8)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_gradient_is_near_the_float64_one(loss: str) -> None:
    exact = session_for((6, 8, 8, 4), "tanh", loss, 32, 0.2, 3)
    parts = exact._parts["train"]
    y = parts.y.astype(np.float32) if loss == "squared" else parts.y
    rough = NumpySession(
        exact.network,
        exact.recipe,
        {"train": Split(x=parts.x.astype(np.float32), y=y)},
        exact._params.astype(np.float32),
    )
    rows = np.arange(32)
    assert rough.gradient(rows) == pytest.approx(exact.gradient(rows), rel=1e-5)
    np.testing.assert_allclose(rough.grad(), exact.grad(), rtol=1e-4, atol=1e-6)


def test_l2_moves_weights_and_not_biases() -> None:
    session = session_for((4, 3, 2), "tanh", "squared", 5, 0.0, 0)
    heavy = NumpySession(
        session.network,
        TrainingRecipe(optimizer=session.recipe.optimizer, batch_size=5, l2=0.5, seed=0),
        session._parts,
        session._params,
        np.float64,
    )
    before = session._params.copy()
    order, rate = np.arange(5), np.array([0.1])
    session.run_epoch(order, rate)
    heavy.run_epoch(order, rate)
    extra = session._params - heavy._params
    n = session.network.n_weights
    np.testing.assert_allclose(extra[:n], 0.1 * 0.5 * before[:n], rtol=1e-9)
    np.testing.assert_array_equal(extra[n:], 0.0)
