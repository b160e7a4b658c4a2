"""Statistics of rows are computed in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from pycuda_nn.data.scaling import Scaler


@pytest.mark.parametrize("shape", [(20_001, 5), (3, 40_000), (7, 1), (300, 784)])
def test_statistics_do_not_depend_on_the_pieces(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32) * 3.0 + 100.0
    x[:, 0] = 2.5
    scaler = Scaler.fit(x, "standard")
    assert scaler is not None
    exact = x.astype(np.float64)
    np.testing.assert_allclose(scaler.shift, exact.mean(axis=0), rtol=1e-6)
    deviation = np.where(exact.std(axis=0) > 0, exact.std(axis=0), 1.0)
    np.testing.assert_allclose(scaler.factor, 1.0 / deviation, rtol=1e-6)
    assert scaler.apply(x)[:, 0].tolist() == [0.0] * len(x)
