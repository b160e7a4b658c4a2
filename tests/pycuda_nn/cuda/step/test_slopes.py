"""The slopes in the kernel of the data gradient, on the CPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.structs import Activation
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.cuda.step.sources import DATA_GRAD_FILES
from pycuda_nn.network import Network

EMULATOR = Path(__file__).parents[1] / "tiny" / "emulator.h"
FIRST, LAST = "// Two gradients of row r", "// Shared address, for a lane"
PACK = """
inline unsigned pack_two(float low, float high) {
  return from_float<T>(low).bits | (unsigned)from_float<T>(high).bits << 16;
}
"""
ENTRY = """
extern "C" unsigned emulate(const Activation* u, float low, float high, unsigned h, int r, int c) {
  return through_two(*u, low, high, h, r, c);
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
def test_rows_after_the_last_add_nothing_to_the_sums(tmp_path: Path) -> None:
    """Their h and their gradient are 0, but the slope of this formula at 0 is not finite."""
    stack = recognise(Network.from_sizes((8, 6, 3), activation="sqrt(abs(x))"))
    assert isinstance(stack, DenseStack)
    *files, last = DATA_GRAD_FILES
    common = kernel_source(*files[: files.index("cuda/step/hidden.cuh") + 1])
    _, _, text = kernel_source(last).partition(FIRST)
    text, _, _ = text.partition(LAST)
    code, made = tmp_path / "slopes.cc", tmp_path / "slopes.so"
    names = "#define __align__(n) __attribute__((aligned(n)))\n#define __restrict__\n"
    source = [EMULATOR.read_text(), names, stack.functions(), common, PACK, "//", text, ENTRY]
    code.write_text("".join(source))
    options = ["-O1", "-w", "-std=c++17", "-shared", "-fPIC", "-DT_BFLOAT16", "-DACTIVATION=3"]
    command = ["g++", *options, "-DDROPOUT=0", "-o", str(made), str(code)]
    subprocess.run(command, check=True)
    through_two = ctypes.CDLL(str(made)).emulate
    through_two.restype = ctypes.c_uint
    u = Activation(rows=3, width=6)

    def results(v: float, h: int, row: int) -> np.ndarray:
        pair = [ctypes.c_float(v)] * 2
        bits = through_two(ctypes.byref(u), *pair, ctypes.c_uint(h), row, 0)
        return np.array([bits << 16 & 0xFFFF0000, bits & 0xFFFF0000], np.uint32).view(np.float32)

    four = 0x40804080  # two bfloat16
    np.testing.assert_array_equal(results(2.0, four, row=2), [0.5, 0.5])
    assert np.isnan(results(0.0, 0, row=2)).all()
    np.testing.assert_array_equal(results(0.0, 0, row=3), [0.0, 0.0])
