"""What follows a built-in product, on the CPU: the numbers are those of numpy."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest

from pycuda_nn.cuda.runtime import structs
from pycuda_nn.layers import Dropout
from pycuda_nn.rng import Purpose, Stream, drop_bits
from tests.pycuda_nn.cuda.step.recording import DRIVERS

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
M, N, K, WIDTH = 70, 48, 96, 43  # rows, padded outputs, inputs, outputs
SEED, TOTAL, LAYER = 2**40 + 3, 17, 1
TILINGS = [(64, 32, 7), (64, 64, 1)]
Array = np.ndarray


class Clock(ctypes.Structure):
    _fields_ = (("step", ctypes.c_int), ("pad", ctypes.c_int), ("total", ctypes.c_longlong))


@pytest.fixture
def emulated() -> Iterator[Any]:
    """Return the module ``emulated``, which imports the launcher of the kernel."""
    modules: dict[str, Any] = {name: MagicMock() for name in DRIVERS}
    with patch.dict(sys.modules, modules):
        yield importlib.import_module("tests.pycuda_nn.cuda.gemm.emulated")


def drawn(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def empty(*shape: int) -> Array:
    return np.full(shape, np.nan, np.float32)


def at(array: Array) -> int:
    return int(array.ctypes.data)


def kept(dropout: Dropout) -> Array:
    """Return the factors of the minibatch, without padding."""
    bits = drop_bits(Stream(SEED, Purpose.DROPOUT), TOTAL + 2, LAYER, M * WIDTH)
    return np.where(bits < dropout.threshold, 0.0, dropout.scale).reshape(M, WIDTH)


def run(emulated: Any, task: Any, tiling: tuple[int, int, int], folder: Path, **values: int) -> int:
    """Run the product; return into how many parts it divides the sum of a column."""
    sgemm = importlib.import_module("pycuda_nn.cuda.gemm.sgemm")
    shape = sgemm.Tiling(m=tiling[0], n=tiling[1], split=tiling[2])
    across, down, split = shape.blocks(task.p.m, task.p.n)
    assert emulated.library(folder, shape, **values).emulate(ctypes.byref(task), across, down, 3)
    return int(down * split)


def activation(clock: Clock, dropout: Dropout, **addresses: int) -> structs.Activation:
    return structs.Activation(
        clock=ctypes.addressof(clock), seed=SEED, purpose=int(Purpose.DROPOUT), rows=M,
        packs=N // 4, width=WIDTH, j=2, layer=LAYER, threshold=dropout.threshold,
        scale=dropout.scale, **addresses,
    )  # fmt: skip


@pytest.mark.parametrize("tiling", TILINGS, ids=str)
@pytest.mark.parametrize(("number", "drop"), [(0, 0.4), (2, 0.0)])
def test_activation(
    emulated: Any, number: int, drop: float, tiling: tuple[int, int, int], tmp_path: Path
) -> None:
    clock, dropout = Clock(step=5, total=TOTAL), Dropout(drop)
    x, w, bias, out = drawn(M, K), 0.2 * drawn(K, N), drawn(N), empty(M, N)
    product = structs.Sgemm(a=at(x), b=at(w), d=at(out), m=M, n=N, k=K, alpha=1.0)
    task = structs.SgemmActivation(p=product, u=activation(clock, dropout, bias=at(bias)))
    values = {"EPILOGUE": 1, "A_ALONG_K": 1, "B_ALONG_K": 0, "OPTIMIZER": 0}
    values |= {"ACTIVATION": number, "DROPOUT": int(drop > 0)}
    run(emulated, task, tiling, tmp_path, **values)
    z = (x.astype(float) @ w + bias)[:, :WIDTH]
    a = {0: np.maximum(z, 0), 1: np.tanh(z), 2: 1 / (1 + np.exp(-z))}[number]
    want = np.pad(a * kept(dropout) if drop else a, [(0, 0), (0, N - WIDTH)])
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tiling", TILINGS, ids=str)
@pytest.mark.parametrize(("number", "drop"), [(0, 0.4), (1, 0.4), (2, 0.0)])
def test_slope_and_its_column_sums(
    emulated: Any, number: int, drop: float, tiling: tuple[int, int, int], tmp_path: Path
) -> None:
    clock, dropout = Clock(step=5, total=TOTAL), Dropout(drop)
    delta, w, out, partial = drawn(M, K), 0.2 * drawn(N, K), empty(M, N), empty(200, N)
    z = drawn(M, WIDTH)
    a = {0: np.maximum(z, 0), 1: np.tanh(z), 2: 1 / (1 + np.exp(-z))}[number]
    factor = kept(dropout) if drop else np.ones((M, WIDTH))
    h = np.pad(a * factor, [(0, 0), (0, N - WIDTH)]).astype(np.float32)
    w[WIDTH:] = 0.0
    product = structs.Sgemm(a=at(delta), b=at(w), d=at(out), m=M, n=N, k=K, alpha=1.0)
    u = activation(clock, dropout, h=at(h), partial=at(partial))
    task = structs.SgemmActivation(p=product, u=u)
    values = {"EPILOGUE": 2, "A_ALONG_K": 1, "B_ALONG_K": 1, "OPTIMIZER": 0}
    values |= {"ACTIVATION": number, "DROPOUT": int(drop > 0)}
    parts = run(emulated, task, tiling, tmp_path, **values)
    slope = {0: (z > 0) * 1.0, 1: 1 - a * a, 2: a * (1 - a)}[number]
    want = np.pad((delta.astype(float) @ w.T)[:, :WIDTH] * slope * factor, [(0, 0), (0, N - WIDTH)])
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(partial[:parts].sum(axis=0), want.sum(axis=0), rtol=1e-4, atol=1e-4)
    assert np.isnan(partial[parts:]).all()


@pytest.mark.parametrize("tiling", TILINGS, ids=str)
@pytest.mark.parametrize("optimizer", [0, 1, 2], ids=["momentum", "nesterov", "adam"])
def test_update(
    emulated: Any, optimizer: int, tiling: tuple[int, int, int], tmp_path: Path
) -> None:
    clock, rates = Clock(step=5, total=TOTAL), np.linspace(0.1, 0.8, 8).astype(np.float32)
    x, delta, w = drawn(K, M), drawn(K, N), drawn(M, N)  # K rows of a minibatch, M inputs
    first, second = drawn(M, N), drawn(M, N) ** 2
    before = [one.astype(float) for one in (w, first, second)]
    product = structs.Sgemm(a=at(x), b=at(delta), m=M, n=N, k=K, alpha=0.5, beta=0.9)
    u = structs.Update(
        weight=at(w), first=at(first), second=at(second), rates=at(rates), j=1,
        clock=ctypes.addressof(clock), n=M * N, momentum=0.9, beta2=0.99, eps=1e-3, l2=0.01,
    )  # fmt: skip
    task = structs.SgemmUpdate(p=product, u=u)
    values = {"EPILOGUE": 3, "A_ALONG_K": 0, "B_ALONG_K": 0, "OPTIMIZER": optimizer}
    run(emulated, task, tiling, tmp_path, **values, ACTIVATION=0, DROPOUT=0)
    w0, m, v = before
    g = 0.5 * (x.T.astype(float) @ delta) + 0.01 * w0
    m, v = (0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g) if optimizer == 2 else (0.9 * m + g, v)
    step = {0: m, 1: g + 0.9 * m, 2: m / (np.sqrt(v) + 1e-3)}[optimizer]
    for got, want in ((w, w0 - rates[6] * step), (first, m), (second, v)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_biases_of_several_layers_and_the_loss(emulated: Any, tmp_path: Path) -> None:
    clock, rates = Clock(step=5, total=TOTAL), np.linspace(0.1, 0.8, 8).astype(np.float32)
    task, end, layers = structs.Biases(), 0, []
    loss, losses = drawn(9), empty(8)
    for place, width in enumerate((48, 16)):
        partial, bias, first = drawn(11, width), drawn(width), drawn(width)
        layers.append((partial, bias, first, bias.copy(), first.copy()))
        task.u[place] = structs.Update(
            bias=at(bias), bias_first=at(first), partial=at(partial), parts=11, outputs=width,
            loss=at(loss), losses=at(losses), loss_parts=9, rows=4, rates=at(rates), j=1,
            clock=ctypes.addressof(clock), momentum=0.9, bias_scale=0.5,
        )  # fmt: skip
        end += -(-width // 32) + place
        task.end[place] = end
    sgemm = importlib.import_module("pycuda_nn.cuda.gemm.sgemm")
    values = {"EPILOGUE": 0, "A_ALONG_K": 1, "B_ALONG_K": 0, "ACTIVATION": 0, "DROPOUT": 0}
    tiling = sgemm.Tiling(m=32, n=32, split=1)
    kernels = emulated.library(tmp_path, tiling, **values, OPTIMIZER=0)
    assert kernels.emulate_biases(ctypes.byref(task), end)
    for partial, bias, first, old_bias, old_first in layers:
        want = 0.9 * old_first + 0.5 * partial.sum(axis=0)
        np.testing.assert_allclose(first, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(bias, old_bias - rates[6] * want, rtol=1e-5, atol=1e-5)
    assert losses[6] == pytest.approx(loss.sum() / 4, rel=1e-5)
