"""The last layer of many classifiers, emulated on the CPU, block after block."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.cuda.many.sources import FUSED_FILES, HEAD_FILES, MANY_FILES
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.runtime.structs import Head
from pycuda_nn.cuda.step.sources import ORDER_FILES, STEP_FILES

EMULATOR = Path(__file__).parents[1] / "tiny" / "emulator.h"
FILES = ("cuda/runtime/common.cuh", "cuda/training/rows.cuh", "layers/activation.cuh")
ENTRY = """
extern "C" bool emulate(const Head* all, int blocks, int networks) {
  blockDim = {256, 1, 1};
  gridDim = {blocks, 1, networks};
  for (int z = 0; z < networks; z++)
    for (int b = 0; b < blocks; b++) {
      emulator::kernel = [=] { emulator::current->block->index = {b, 0, z}; head_many(*all); };
      if (!emulator::run(1, 256, 16, b + 7 * z)) return false;
    }
  return true;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
@pytest.mark.parametrize(("width", "classes", "rows"), [(48, 3, 37), (256, 10, 32)])
def test_each_network_has_its_own_gradients(
    width: int, classes: int, rows: int, tmp_path: Path
) -> None:
    networks, blocks = 3, 4
    code, made = tmp_path / "head.cc", tmp_path / "head.so"
    align = "#define __align__(n) __attribute__((aligned(n)))\n"
    source = kernel_source(*FILES, "layers/loss.cuh", *HEAD_FILES)
    code.write_text(EMULATOR.read_text() + align + source + ENTRY)
    defines = f"T_FLOAT ACTIVATION=0 HEAD_WIDTH={width} HEAD_CLASSES={classes}".split()
    subprocess.run(
        [
            "g++",
            "-O1",
            "-fno-strict-aliasing",
            "-fno-gnu-unique",
            "-std=c++17",
            "-w",
            "-shared",
            "-fPIC",
        ]
        + ["-o", str(made), str(code)]
        + [f"-D{word}" for word in defines],
        check=True,
    )
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    def empty(*shape: int) -> np.ndarray:
        return np.full(shape, np.nan, dtype=np.float32)

    weight, bias = (np.zeros((networks, n, 16), dtype=np.float32) for n in (width, 1))
    weight[:, :, :classes] = 0.2 * drawn(networks, width, classes)
    bias[:, :, :classes] = drawn(networks, 1, classes)
    arrays = {
        "h": np.maximum(drawn(networks, rows, width), 0), "weight": weight, "bias": bias,
        "y": random.integers(0, classes, (networks, rows)).astype(np.int32),
        "below": empty(networks, rows, width), "delta": empty(networks, rows, 16),
        "loss": empty(networks, blocks), "partial": empty(networks, blocks, 16),
        "partial_below": empty(networks, blocks, width),
    }  # fmt: skip
    arguments = Head(**{n: a.ctypes.data for n, a in arrays.items()}, rows=rows, scale=1 / rows)
    emulate = ctypes.CDLL(str(made)).emulate
    emulate.restype = ctypes.c_bool
    assert emulate(ctypes.byref(arguments), blocks, networks)

    z = (arrays["h"] @ weight + bias)[:, :, :classes].astype(np.float64)
    p = np.exp(z - z.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    hot = np.arange(16) == arrays["y"][:, :, None]
    delta = (np.pad(p, [(0, 0), (0, 0), (0, 16 - classes)]) - hot) / rows
    below = delta @ weight.swapaxes(1, 2) * (arrays["h"] > 0)
    losses = -np.log(p[hot[:, :, :classes]]).reshape(networks, rows).sum(axis=1)
    for found, wanted in (
        (arrays["delta"], delta), (arrays["below"], below), (arrays["loss"].sum(axis=1), losses),
        (arrays["partial"].sum(axis=1), delta.sum(axis=1)),
        (arrays["partial_below"].sum(axis=1), below.sum(axis=1)),
    ):  # fmt: skip
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="this machine has no nvcc")
@pytest.mark.parametrize("kind", ["T_BFLOAT16 MASTER=1", "T_HALF MASTER=2"])
def test_the_compiler_reads_no_argument_through_a_pointer(kind: str, tmp_path: Path) -> None:
    """As CUDA 13.0 does if the kernel changes a copy of its argument; then it reads network 0."""
    names = (*STEP_FILES, "layers/softmax.cuh", *ORDER_FILES, *MANY_FILES, *FUSED_FILES)
    code, made = tmp_path / "head.cu", tmp_path / "head.ptx"
    code.write_text(kernel_source(*names, *HEAD_FILES))
    words = f"{kind} GRADIENT ACTIVATION=0 DROPOUT=0 OPTIMIZER=0 MANY_ROWS=64 MANY_STAGES=4".split()
    words += ["HEAD_WIDTH=256", "HEAD_CLASSES=10"]
    nvcc = find_nvcc()
    assert nvcc is not None
    subprocess.run(
        [nvcc._path, "--ptx", "-arch=sm_90", "-std=c++17", "-w", "-o", made, code]
        + [f"-D{word}" for word in words],
        check=True,
    )
    text = made.read_text()
    kernel = text[text.index(".entry head_many(") :].split(".entry", 2)[1]
    assert "ld.param" in kernel
    assert not re.findall(r"ld\.param\S*\s+\S+ \[%", kernel)
