"""The data gradient with the slope in its epilogue: like float64, and the same bits each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.cuda.layout import PaddedDense
from pycuda_nn.cuda.runtime.precision import PRECISIONS, Precision
from pycuda_nn.cuda.runtime.structs import Activation
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.cuda.step.tilings import MAPS_BYTES, TILINGS
from pycuda_nn.network import Network
from pycuda_nn.training.fit_to_data import recipe

pytestmark = pytest.mark.gpu
# rows, inputs, outputs: one tile, incomplete tiles, an odd number of tiles, more tiles than blocks
SHAPES = [(1, 16, 16), (250, 784, 336), (129, 528, 2064), (1000, 272, 48), (4000, 2064, 512)]
PLACES = range(len(TILINGS))


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    made = Bench()
    with made.device.active():
        if made.device.facts.compute_capability != (9, 0):
            pytest.skip("the kernel needs compute capability 9.0")
        yield made
        made.memory.free()


class Bench:
    """Runs the kernel on matrices of the host."""

    def __init__(self) -> None:
        from pycuda_nn.cuda.runtime.device import Device, Memory

        self.device = Device(0)
        self.memory = Memory(self.device, None)
        self._made: dict[tuple[str, str], Any] = {}

    def kernels(self, precision: str, activation: str) -> Any:
        from pycuda_nn.cuda.step.data_grad import DataGradKernels
        from pycuda_nn.cuda.step.plan import TrainingPlan

        if (precision, activation) not in self._made:
            stack = recognise(Network.from_sizes((8, 6, 3), activation=activation))
            assert isinstance(stack, DenseStack)
            of = PRECISIONS[precision]
            plan = TrainingPlan(stack=stack, recipe=recipe(nn.TrainConfig()), precision=of)
            made = DataGradKernels(self.device, plan)
            self._made[precision, activation] = made
        return self._made[precision, activation]

    def put(self, array: Any) -> int:
        import pycuda.driver as cuda

        address = self.memory.allocate(array.nbytes, "a test")
        cuda.memcpy_htod(address, array)
        return address

    def run(self, kernel: Any, arrays: tuple[Any, Any, Any]) -> list[tuple[Any, Any]]:
        """Return gradient and column sums of two launches on (delta, weights, h) in 16 bits."""
        import pycuda.driver as cuda

        delta, weights, h = arrays
        (rows, outputs), inputs = delta.shape, len(weights)
        out = np.full((rows, inputs), 0x7FFF, np.uint16)
        partial = np.full((-(-rows // 64), inputs), np.nan, np.float32)
        at_out, at_partial = self.put(out), self.put(partial)
        u = Activation(rows=rows, width=inputs, h=self.put(h), partial=at_partial)
        layer = PaddedDense(inputs=inputs, outputs=outputs, width=outputs, weights=0, bias=0)
        arguments = kernel.arguments(
            self.put(np.zeros(MAPS_BYTES, np.uint8)), layer, u,
            delta=self.put(delta), weights=self.put(weights), below=at_out,
        )  # fmt: skip
        stream, results = cuda.Stream(), []
        for _ in range(2):
            cuda.memcpy_htod(at_out, out)
            cuda.memcpy_htod(at_partial, partial)
            kernel.launch(arguments, stream)
            stream.synchronize()
            results.append((np.empty_like(out), np.empty_like(partial)))
            cuda.memcpy_dtoh(results[-1][0], at_out)
            cuda.memcpy_dtoh(results[-1][1], at_partial)
        return results


def wide(of: Precision, bits: Any) -> Any:
    """Return 16-bit numbers as float64."""
    if of.name == "fp16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def check(bench: Any, place: int, precision: str, activation: str, shape: tuple[int, ...]) -> None:
    of, (rows, inputs, outputs) = PRECISIONS[precision], shape
    draw = np.random.default_rng(7)

    def some(*size: int) -> Any:
        return of.rounded(draw.standard_normal(size, dtype=np.float32))

    delta, weights, h = some(rows, outputs), some(inputs, outputs), some(rows, inputs)
    if activation == "tanh":
        h = of.rounded(np.tanh(wide(of, h)).astype(np.float32))
    kernel = bench.kernels(precision, activation).kernel(place)
    (bits, sums), again = bench.run(kernel, (delta, weights, h))
    np.testing.assert_array_equal(bits, again[0])
    np.testing.assert_array_equal(sums, again[1])
    a = wide(of, h)
    slope = (a > 0) * 1.0 if activation == "relu" else 1 - a * a
    wanted, found = (wide(of, delta) @ wide(of, weights).T) * slope, wide(of, bits)
    tolerance = 2**-7 if precision == "bf16" else 2**-10
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * outputs**0.5 / 50)
    starts = range(0, rows, 64)
    totals = np.add.reduceat(found, list(starts), axis=0)
    np.testing.assert_allclose(sums, totals, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("place", PLACES)
def test_relu(bench: Any, place: int, precision: str, shape: tuple[int, int, int]) -> None:
    check(bench, place, precision, "relu", shape)


@pytest.mark.parametrize("place", PLACES)
def test_tanh(bench: Any, place: int) -> None:
    check(bench, place, "bf16", "tanh", (250, 784, 336))


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize("place", PLACES)
def test_a_training_is_as_with_separate_kernels(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pycuda_nn.cuda.step.fused_grads import FusedGrad

    config = nn.TrainConfig(
        hidden=(777, 333, 160, 160, 160), lr=0.05, epochs=2, batch_size=250, scale="unit", seed=3
    )
    data, used = nn.load_splits("digits"), []
    launch = FusedGrad.launch

    def params(choice: int) -> Any:
        monkeypatch.setattr(FusedGrad, "algorithms", lambda _: [bytes([choice])])
        monkeypatch.setattr(FusedGrad, "launch", lambda own: used.append(launch(own)) or used[-1])
        used.clear()
        backend = nn.CudaBackend(nn.CudaOptions(precision="bf16"))
        return nn.train(config, data.train, backend=backend).model.params

    separate = params(0)
    assert not any(used)
    fused = params(place + 1)
    assert any(used)
    np.testing.assert_array_equal(fused, params(place + 1))
    np.testing.assert_allclose(fused, separate, atol=2e-3)
