"""The built-in float32 products: compare every tiling on the GPU with float64 for all shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
SHAPES = [(128, 784, 512), (37, 80, 528), (1, 16, 16), (300, 512, 16), (65, 2048, 48)]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    made = Bench()
    with made.device.active():
        yield made
        made.memory.free()


class Bench:
    """Runs a product with a tiling."""

    def __init__(self) -> None:
        from pycuda_nn.cuda.gemm.sgemm import Sgemm
        from pycuda_nn.cuda.runtime.device import Device, Memory

        self.device = Device(0)
        self.memory = Memory(self.device, None)
        self.sgemm = Sgemm(self.device)

    def put(self, array: Any) -> int:
        import pycuda.driver as cuda

        address = self.memory.allocate(array.nbytes, "a test")
        cuda.memcpy_htod(address, array)
        return address

    def run(self, place: int, product: Any, out: Any) -> Any:
        """Return the result of the product on ``out``; check that two runs give the same bits."""
        import pycuda.driver as cuda

        stream, results = cuda.Stream(), []
        for _ in range(2):
            cuda.memcpy_htod(product.d, out)
            self.sgemm.launch(place, product, product.b, stream)
            stream.synchronize()
            results.append(np.empty_like(out))
            cuda.memcpy_dtoh(results[-1], product.d)
        assert np.array_equal(results[0], results[1], equal_nan=True)
        return results[0]


def places(bench: Any) -> list[int]:
    from pycuda_nn.cuda.gemm.sgemm import TILINGS

    most = 99 if bench.device.facts.compute_capability >= (9, 0) else 1
    if bench.device.facts.compute_capability < (8, 0):
        pytest.skip("the built-in products need compute capability 8.0")
    return [place for place, tiling in enumerate(TILINGS) if tiling.split <= most]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["forward", "forward relu", "data gradient", "weight gradient"])
def test_products(bench: Any, kind: str, shape: tuple[int, int, int]) -> None:
    from pycuda_nn.cuda.gemm import products
    from pycuda_nn.cuda.layout import PaddedDense

    rows, inputs, outputs = shape
    layer = PaddedDense(inputs=inputs, outputs=outputs, width=outputs, weights=0, bias=0)
    draw = np.random.default_rng(7)
    x, w, delta, bias = (
        draw.standard_normal(size, dtype=np.float32)
        for size in [(rows, inputs), (inputs, outputs), (rows, outputs), (outputs,)]
    )
    at_x, at_w, at_delta = (bench.put(array) for array in (x, w, delta))
    if kind.startswith("forward"):
        out = np.full((rows, outputs), np.nan, np.float32)
        relu = bench.put(bias) if "relu" in kind else 0
        product = products.forward(
            layer, rows, x=at_x, weights=at_w, z=bench.put(out), relu_bias=relu
        )
        want = x.astype(np.float64) @ w
        want = np.maximum(want + bias, 0.0) if relu else want
    elif kind == "data gradient":
        out = np.full((rows, inputs), np.nan, np.float32)
        product = products.data_gradient(
            layer, rows, delta=at_delta, weights=at_w, below=bench.put(out)
        )
        want = delta.astype(np.float64) @ w.T
    else:
        out = draw.standard_normal((inputs, outputs), dtype=np.float32)
        product = products.weight_gradient(
            layer, rows, x=at_x, delta=at_delta, out=bench.put(out), alpha=0.5, beta=0.9
        )
        want = 0.5 * (x.T.astype(np.float64) @ delta) + 0.9 * out
    for place in places(bench):
        got = bench.run(place, product, out)
        assert np.linalg.norm(got - want) <= 3e-6 * np.linalg.norm(want), place


def test_nan_stays_nan(bench: Any) -> None:
    from pycuda_nn.cuda.gemm import products
    from pycuda_nn.cuda.layout import PaddedDense

    layer = PaddedDense(inputs=16, outputs=32, width=32, weights=0, bias=0)
    x, w = np.ones((40, 16), np.float32), np.ones((16, 32), np.float32)
    x[3, 5] = np.nan
    out = np.zeros((40, 32), np.float32)
    product = products.forward(
        layer, 40, x=bench.put(x), weights=bench.put(w), z=bench.put(out),
        relu_bias=bench.put(np.zeros(32, np.float32)),
    )  # fmt: skip
    for place in places(bench):
        got = bench.run(place, product, out)
        assert np.isnan(got[3]).all()
        assert np.isfinite(np.delete(got, 3, axis=0)).all()


def test_a_training_in_float32_tries_them() -> None:
    from pycuda_nn.cuda.gemm import products
    from pycuda_nn.cuda.gemm.sgemm import TILINGS, worth_a_try
    from pycuda_nn.cuda.layout import PaddedDense

    layer = PaddedDense(inputs=784, outputs=512, width=512, weights=0, bias=0)
    small = products.forward(layer, 128, x=0, weights=0, z=0)
    hopper = worth_a_try(small, (9, 0), 132)
    assert max(TILINGS[place].split for place in hopper) > 1
    assert all(TILINGS[place].split == 1 for place in worth_a_try(small, (8, 0), 108))
    assert worth_a_try(small, (7, 5), 40) == []
    large = products.forward(layer, 8192, x=0, weights=0, z=0)
    assert worth_a_try(large, (9, 0), 132) == []
