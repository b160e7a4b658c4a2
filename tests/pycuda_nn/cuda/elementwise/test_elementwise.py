"""Compare the kernels on a GPU with float64, and check their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pycuda_nn.cuda.elementwise.single import SINGLE
from pycuda_nn.errors import DeviceError, ShapeError
from pycuda_nn.expression import Input
from pycuda_nn.expression.operations import exp, ln, sigmoid, tanh

pytestmark = pytest.mark.gpu

NUMBERS = {"c": 1.7, "level": 0.3, "value": -0.9}
SIZES = (1, 2, 3, 4, 5, 31, 1023, 1024, 1025, 100_003)
SHIFTS = ((0, 0, 0), (1, 1, 1), (3, 3, 3), (0, 1, 2), (2, 2, 1))
WIDE = 3_000_005  # more than one wave of blocks, less than the L2 cache
CASES = [(size, shifts) for size in SIZES for shifts in SHIFTS] + [(WIDE, (3, 3, 3))]


@pytest.fixture(scope="module")
def family() -> Iterator[Any]:
    from pycuda_nn.cuda.elementwise.kernel import Elementwise
    from pycuda_nn.cuda.runtime.device import Device

    device = Device(0)
    with device.active():
        yield Elementwise(device)


def to_gpu(values: np.ndarray, shift: int = 0) -> Any:
    """Return a GPU array of ``values`` whose address is 4 ``shift`` past a multiple of 256."""
    from pycuda import gpuarray

    if not values.size:  # PyCUDA cannot slice or fill an empty array
        return gpuarray.empty(values.shape, np.float32)
    part = gpuarray.empty(values.size + shift, np.float32)[shift:]
    part.set(np.ascontiguousarray(values.ravel()))
    return part.reshape(values.shape)


def given(names: tuple[str, ...], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {name: rng.normal(size=shape).astype(np.float32) for name in names}


@pytest.mark.parametrize("name", SINGLE)
def test_values_over_odd_sizes_and_unaligned_slices(family: Any, name: str) -> None:
    kernel = family.single(name)
    numbers = {scalar.name: NUMBERS[scalar.name] for scalar in kernel.program.scalars}
    whole = given(kernel.program.inputs, (max(size for size, _ in CASES),))
    for size, shifts in CASES:
        host = {operand: array[:size] for operand, array in whole.items()}
        wide = {operand: array.astype(np.float64) for operand, array in host.items()}
        expected = kernel.program.evaluate(**wide, **NUMBERS)
        arrays = {
            operand: to_gpu(array, shift)
            for (operand, array), shift in zip(host.items(), shifts[1:], strict=False)
        }
        out = to_gpu(np.full(size, 7.0, np.float32), shifts[0])
        kernel(out, **arrays, **numbers)
        np.testing.assert_allclose(out.get(), expected, rtol=2e-6, atol=1e-37)
        first = next(iter(arrays.values()))
        kernel(first, **arrays, **numbers)
        np.testing.assert_array_equal(first.get(), out.get())


def test_nothing_beside_the_slice_is_touched(family: Any) -> None:
    room = to_gpu(np.full(5000, 3.0, np.float32))
    for shift in range(1, 5):
        for size in (1, 2, 3, 5, 1025):
            part = room[100 + shift : 100 + shift + size]
            family.mulc(part, 2.0, out=part)
            held = room.get()
            assert (held[100 + shift : 100 + shift + size] == 6).all()
            assert held.sum() == 3 * 5000 + 3 * size
            family.mulc(part, 0.5, out=part)


@pytest.mark.parametrize("name", SINGLE)
def test_special_values_are_the_twins(family: Any, name: str) -> None:
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 88.8, -88.8, 1e38, -1e38, 1])
    kernel = family.single(name)
    values = {
        operand: np.roll(np.tile(special, 11), i * 13).reshape(11, 11)
        for i, operand in enumerate(kernel.program.inputs)
    }
    numbers = {scalar.name: NUMBERS[scalar.name] for scalar in kernel.program.scalars}
    out = to_gpu(np.zeros((11, 11), np.float32))
    kernel(out, **{operand: to_gpu(array) for operand, array in values.items()}, **numbers)
    expected = kernel.program.evaluate(**values, **NUMBERS)
    np.testing.assert_allclose(out.get(), expected, rtol=2e-6, atol=1e-37)


def test_friendly_functions(family: Any) -> None:
    x, y = given(("x", "y"), (37, 5)).values()
    a, b, out = to_gpu(x), to_gpu(y), to_gpu(np.zeros_like(x))
    calls = {
        "mulc": (lambda: family.mulc(a, 2.5, out=out), x * 2.5),
        "addc": (lambda: family.addc(a, 2.5, out=out), x + 2.5),
        "mul": (lambda: family.mul(a, b, out=out), x * y),
        "add": (lambda: family.add(a, b, out=out), x + y),
        "sub": (lambda: family.sub(a, b, out=out), x - y),
        "exp": (lambda: family.exp(a, out=out), np.exp(x)),
        "ln": (lambda: family.ln(a, out=out), np.where(x > 0, np.log(np.abs(x)), np.nan)),
        "sqr": (lambda: family.sqr(a, out=out), x * x),
        "sqrt": (lambda: family.sqrt(a, out=out), np.where(x > 0, np.sqrt(np.abs(x)), np.nan)),
        "absolute": (lambda: family.absolute(a, out=out), np.abs(x)),
        "threshold": (lambda: family.threshold(a, 0.2, out=out), np.maximum(x, 0.2)),
        "sigmoid": (lambda: family.sigmoid(a, out=out), 1 / (1 + np.exp(-x))),
        "tanh": (lambda: family.tanh(a, out=out), np.tanh(x)),
        "relu": (lambda: family.relu(a, out=out), np.maximum(x, 0)),
        "sigmoid_grad": (lambda: family.sigmoid_grad(a, b, out=out), x * y * (1 - y)),
        "tanh_grad": (lambda: family.tanh_grad(a, b, out=out), x * (1 - y * y)),
        "relu_grad": (lambda: family.relu_grad(a, b, out=out), x * (y > 0)),
    }
    assert calls.keys() == SINGLE.keys()
    for name, (call, expected) in calls.items():
        call()
        np.testing.assert_allclose(out.get(), expected, rtol=3e-6, atol=1e-6, err_msg=name)


def test_a_fused_expression_and_one_code_for_one_structure(family: Any) -> None:
    x, y = Input("x"), Input("y")
    kernel = family.compile(ln(exp(x * 0.5 + 0.25) + 1.0) / (2.0 + sigmoid(y)) - tanh(x * y))
    host = given(("x", "y"), (100_003,))
    out = to_gpu(np.zeros(100_003, np.float32))
    kernel(out, x=to_gpu(host["x"]), y=to_gpu(host["y"], 1))
    wide = {operand: array.astype(np.float64) for operand, array in host.items()}
    np.testing.assert_allclose(out.get(), kernel.program.evaluate(**wide), rtol=1e-5, atol=1e-6)
    held = len(family._modules)
    family.compile(Input("p") * 3.0 + 4.0)
    other = family.compile(Input("q") * 5.0 + 6.0)
    assert len(family._modules) == held + 1
    other(out, q=to_gpu(host["x"]))
    np.testing.assert_allclose(out.get(), host["x"] * 5 + 6, rtol=1e-5, atol=1e-5)


def test_a_stream_a_bound_launch_and_no_elements(family: Any) -> None:
    import pycuda.driver as cuda

    stream = cuda.Stream()
    x = to_gpu(np.ones(1000, np.float32))
    family.mulc(x, 3.0, out=x, stream=stream)
    kernel = family.single("addc")
    again = kernel.bind(int(x.ptr), [int(x.ptr)], 1000, [0.5], stream)
    for _ in range(4):
        again()
    kernel.bind(int(x.ptr), [int(x.ptr)], 0, [0.5], stream)()
    stream.synchronize()
    assert (x.get() == 5.0).all()
    none = to_gpu(np.zeros((0, 4), np.float32))
    family.mulc(none, 3.0, out=none)


def test_errors_launch_nothing(family: Any) -> None:
    from pycuda import gpuarray

    x = to_gpu(np.ones((6, 4), np.float32))
    bad = {
        r"\(4, 6\)": x.reshape(4, 6),
        "float64": gpuarray.zeros((6, 4), np.float64),
        "contiguous": to_gpu(np.ones((6, 8), np.float32))[:, ::2],
        "ndarray": np.ones((6, 4), np.float32),
    }
    for fact, array in bad.items():
        with pytest.raises(ShapeError, match=f"input 'y' .*{fact}"):
            family.mul(x, array, out=x)
    room = to_gpu(np.ones(100, np.float32))
    with pytest.raises(ShapeError, match=f"{int(room.ptr):#x}.*{int(room.ptr) + 4:#x}"):
        family.mulc(room[:50], 9.0, out=room[1:51])
    with pytest.raises(ShapeError, match="2 inputs and 0 scalars"):
        family.single("mulc").bind(int(x.ptr), [int(x.ptr)] * 2, 24)
    assert (room.get() == 1).all()
    assert (x.get() == 1).all()


def test_more_than_two_to_the_31_elements(family: Any) -> None:
    import pycuda.driver as cuda

    n = 2**31 + 13
    if cuda.mem_get_info()[0] < 4 * n + (1 << 30):
        pytest.skip("the GPU has not enough memory for 2^31 floats")
    held = cuda.mem_alloc(4 * n)
    try:
        cuda.memset_d32(held, int(np.float32(3).view(np.uint32)), n)
        for first in (0, 1):
            place, count = int(held) + 4 * first, n - first
            family.single("mulc").bind(place, [place], count, [2.0])()
        piece = np.empty(1 << 20, np.float32)
        for first in (0, 2**30, 2**31 - 2**20, n - len(piece)):
            cuda.memcpy_dtoh(piece, int(held) + 4 * first)
            assert (piece[1:] == 12).all(), first
            assert piece[0] == (6 if first == 0 else 12)
    finally:
        held.free()


def test_a_graph_replays_launches_and_survives_errors(family: Any) -> None:
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.graph import Graph

    stream, other = cuda.Stream(), cuda.Stream()
    x = to_gpu(np.ones(1000, np.float32))
    with pytest.raises(ZeroDivisionError):
        Graph(stream, lambda: 1 // 0)
    with pytest.raises(DeviceError):
        Graph(stream, lambda: _break(stream))
    graph = Graph(stream, lambda: family.mulc(x, 2.0, out=x, stream=stream))
    assert (x.get() == 1).all()
    graph.launch()
    graph.launch()
    stream.synchronize()
    graph.launch(other)
    other.synchronize()
    assert (x.get() == 8).all()
    graph.close()
    graph.close()
    with pytest.raises(DeviceError, match=r"CUDA graph: .*close"):
        graph.launch()


def _break(stream: Any) -> None:
    """Wait for a stream during its recording: the driver rejects it and discards the recording."""
    import pycuda.driver as cuda

    with pytest.raises(cuda.Error):
        stream.synchronize()
