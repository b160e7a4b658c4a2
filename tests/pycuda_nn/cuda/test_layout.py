from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycuda_nn.cuda.layout import ALIGN, ParameterLayout, check_reach, padded
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.runtime.structs import Update
from pycuda_nn.errors import ConfigError
from pycuda_nn.network import Network

WIDTHS = st.lists(st.integers(1, 40), min_size=2, max_size=5)


@given(WIDTHS)
def test_parameters_come_back_as_they_went(sizes: list[int]) -> None:
    network = Network.from_sizes(sizes=tuple(sizes), activation="relu", loss="squared")
    layout = ParameterLayout(network)
    params = np.arange(1, network.n_params + 1, dtype=np.float32)
    wide = layout.spread(params)
    assert len(wide) == layout.n_params
    assert np.count_nonzero(wide) == len(params)  # the padding is zero
    np.testing.assert_array_equal(layout.compact(wide), params)


def test_every_row_of_weights_starts_on_a_tile() -> None:
    layout = ParameterLayout(
        Network.from_sizes(sizes=(6, 9, 33, 3), activation="relu", loss="softmax")
    )
    assert layout.sizes == (16, 16, 48, 16)
    for layer in layout.layers:
        assert layer.weights % ALIGN == layer.bias % ALIGN == 0
    wide = layout.spread(np.ones(layout.network.n_params, dtype=np.float32))
    first = wide[: 16 * 16].reshape(16, 16)
    assert first[:6, :9].all()
    assert not first[6:].any()
    assert not first[:, 9:].any()


def test_what_kernels_cannot_count_is_refused() -> None:
    """2**32 weights are 0 in a 32-bit argument: the layer would not learn."""
    assert Update(n=1 << 32).n == 0
    layout = ParameterLayout(
        Network.from_sizes(sizes=(784, 512, 10), activation="relu", loss="softmax")
    )
    check_reach(layout, rows=1 << 30, batch=1 << 20, pack=4)
    with pytest.raises(ConfigError, match=r"\b16,777,216 rows"):
        check_reach(layout, rows=1 << 30, batch=1 << 24, pack=4)
    with pytest.raises(ConfigError, match=r"\b1,073,741,825 rows.* 2\*\*30"):
        check_reach(layout, rows=(1 << 30) + 1, batch=64, pack=4)
    wide = ParameterLayout(
        Network.from_sizes(sizes=(16, 65536, 65536, 10), activation="relu", loss="softmax")
    )
    with pytest.raises(ConfigError, match=r"65,536 x 65,536 .*2\*\*31 weights"):
        check_reach(wide, rows=100, batch=64, pack=8)


def test_padded() -> None:
    assert [padded(n) for n in (1, 15, 16, 17)] == [16, 16, 16, 32]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_two_halves_are_the_whole_float32(values: list[float]) -> None:
    precision, whole = PRECISIONS["bf16"], np.array(values, dtype=np.float32)
    joined = precision.joined(precision.rounded(whole), precision.low_bits(whole))
    np.testing.assert_array_equal(joined.view(np.uint32), whole.view(np.uint32))


@pytest.mark.parametrize(("name", "digits"), [("bf16", 2.0**-8), ("fp16", 2.0**-11)])
def test_rounding_is_to_the_nearest(name: str, digits: float) -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    bits = PRECISIONS[name].rounded(values)
    if name == "bf16":
        near = (bits.astype(np.uint32) << 16).view(np.float32)
    else:
        near = bits.view(np.float16).astype(np.float32)
    assert np.all(np.abs(near - values) <= digits * np.abs(values))
