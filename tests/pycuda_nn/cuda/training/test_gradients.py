"""The comparison of gradients starts with the weights of the training, without a GPU."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest

from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.network import Network
from tests.pycuda_nn.cuda.step.recording import DRIVERS

NETWORK = Network.from_sizes((3, 2))
PARAMS = NETWORK.initial_params(1)


class Weights:
    """Parameters and a velocity."""

    def __init__(self) -> None:
        self.w, self.first = PARAMS.copy(), np.ones_like(PARAMS)

    def load_params(self, params: Any) -> None:
        self.w = params.copy()

    def clear_moments(self) -> None:
        self.first[:] = 0

    def moments(self) -> dict[str, Any]:
        return {"velocity": self.first.copy()}


class Epoch:
    """Steps with a rate of 0 whose gradient is the weights times a factor."""

    def __init__(self, weights: Weights, factor: float) -> None:
        self._weights, self._factor = weights, factor

    def launch_full(self, steps: int) -> None:
        weights = self._weights
        for _ in range(steps):
            weights.first += self._factor * weights.w
            weights.w -= np.float32(0) * weights.first


@pytest.fixture
def session() -> Iterator[Any]:
    stack = recognise(NETWORK)
    assert isinstance(stack, DenseStack)
    with patch.dict(sys.modules, {name: MagicMock() for name in DRIVERS}):
        made = importlib.import_module("pycuda_nn.cuda.training.session")
        session = object.__new__(made.CudaSession)
        vars(session).update(
            _plan=SimpleNamespace(stack=stack), _device=MagicMock(), _streams=MagicMock(),
            _source=MagicMock(), _weights=Weights(), _n=100, _batch=16,
        )  # fmt: skip
        yield session


def test_kernels_that_give_nan_do_not_change_the_gradients_of_others(session: Any) -> None:
    right, wrong = (Epoch(session._weights, factor) for factor in (1.0, np.nan))
    want = session._gradients(PARAMS, right)
    assert [part.shape for part in want] == [(3, 2), (2,)]
    np.testing.assert_allclose(want[0].ravel(), 6 * PARAMS[:6], rtol=1e-6)  # full minibatches
    assert np.isnan(session._gradients(PARAMS, wrong)[0]).all()
    for part, again in zip(want, session._gradients(PARAMS, right), strict=True):
        np.testing.assert_array_equal(part, again)
