"""The text of the kernels, run by the host's compiler against the twin, and compiled for GPUs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.cuda.compiler import build, find_nvcc
from pycuda_nn.cuda.expression import SINGLE, Expression, Input, exp, ln, sigmoid, tanh
from pycuda_nn.cuda.operands import BLOCK, sweep
from pycuda_nn.cuda.program import program

# What a kernel sees of CUDA, for one thread after the other.
SHIM = """
#include <math.h>
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
struct float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class V> V __ldcs(const V* from) { return *from; }
template <class V> void __stcs(V* to, V v) { *to = v; }
static struct { unsigned x; } blockIdx, threadIdx, gridDim;
"""
RUN = """
extern "C" void run_NAME(unsigned blocks, float* out, const Inputs* in, long long n, int head,
                         const Scalars* s) {
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < BLOCK; ++threadIdx.x) NAME(out, *in, n, head, *s);
}
"""
ENTRIES = ("small", "large", "single")
A, DELTA, X, Y = (Input(name) for name in ("a", "delta", "x", "y"))
MANY = ln(exp(X * 0.5 + 0.25) + 1.0) / (2.0 + sigmoid(Y)) - tanh(A * DELTA)
EXPRESSIONS = {**SINGLE, "copy": X, "many": MANY}
NUMBERS = {"c": 1.7, "level": 0.3, "value": -0.9}


class OnHost:
    """Kernels of an expression, run on the host."""

    def __init__(self, expression: Expression, folder: Path) -> None:
        self.program = program(expression)
        text = SHIM + self.program.source() + "".join(RUN.replace("NAME", n) for n in ENTRIES)
        made = folder / "kernel.so"
        argv = ["g++", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-x", "c++", "-"]
        subprocess.run([*argv, "-o", str(made)], input=text, text=True, check=True)
        self._library = ctypes.CDLL(str(made))

    def __call__(self, entry: str, blocks: int, head: int, out: int, ins: list[int], n: int):
        numbers = self.program.numbers(NUMBERS) or (0.0,)
        self._library[f"run_{entry}"](
            ctypes.c_uint(blocks),
            ctypes.c_void_p(out),
            (ctypes.c_void_p * len(ins))(*ins),
            ctypes.c_longlong(n),
            ctypes.c_int(head),
            (ctypes.c_float * len(numbers))(*numbers),
        )


needs_host_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")


@needs_host_compiler
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_text_computes_what_the_twin_computes(name: str, tmp_path: Path) -> None:
    kernel = OnHost(EXPRESSIONS[name], tmp_path)
    rng = np.random.default_rng(1)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 88.8, -88.8, 1.0, 0.3, -0.3]
    given = {
        each: np.concatenate([rng.permutation(special), rng.normal(size=990)]).astype(np.float32)
        for each in kernel.program.inputs
    }
    out = np.full(1001, 7, np.float32)
    addresses = [array.ctypes.data for array in given.values()]
    kernel("single", 3, 0, out.ctypes.data, addresses, 1001)
    expected = kernel.program.evaluate(**given, **NUMBERS)
    atol = 3e-7 if name == "many" else 1e-37  # of terms that cancel
    np.testing.assert_allclose(out, expected, rtol=3e-6, atol=atol)


@needs_host_compiler
def test_every_element_is_written_once_and_nothing_else(tmp_path: Path) -> None:
    """In place x * 1.7 + y: an element that is skipped or done twice is seen."""
    kernel = OnHost(X * 1.7 + Y, tmp_path)
    expected_of = np.float32(1.7)
    for n in (1, 2, 3, 4, 5, 7, 8, 255, 1023, 1024, 1025, 2051, 4096 * 3 + 1):
        for shift, other in ((0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (3, 2)):
            for entry in ("small", "large"):
                given, y = _aligned(n + 8), _aligned(n + 8)
                given[:], y[:] = np.arange(n + 8) + 1, 0.5
                out = given.copy()
                place = given[4 + shift :][:n]
                addresses = [place.ctypes.data, y[4 + other :].ctypes.data]
                plan = sweep(addresses[0], addresses, n)
                assert plan is not None
                assert plan.entry == ("small" if shift == other else "single")
                chosen = entry if plan.entry == "small" else "single"
                kernel(chosen, plan.blocks, plan.head, addresses[0], addresses, n)
                out[4 + shift :][:n] = out[4 + shift :][:n] * expected_of + np.float32(0.5)
                np.testing.assert_array_equal(given, out, err_msg=f"{n} {shift} {other} {entry}")


def _aligned(n: int) -> np.ndarray:
    """Return n float32 of which the first stands at a multiple of 16."""
    room = np.zeros(n + 4, np.float32)
    first = -room.ctypes.data % 16 // 4
    return room[first : first + n]


@needs_host_compiler
def test_fewer_blocks_than_needed_go_on_striding(tmp_path: Path) -> None:
    kernel = OnHost(X * 2.0, tmp_path)
    for entry in ENTRIES:
        x = _aligned(40 * BLOCK + 3)
        x[:] = 1
        kernel(entry, 2, 0, x.ctypes.data, [x.ctypes.data], len(x))
        assert (x == 2).all(), entry


ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")


@needs_nvcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_operation_compiles(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = find_nvcc()
    assert nvcc is not None
    if arch not in nvcc.architectures():
        pytest.skip(f"this nvcc does not compile for {arch}")
    monkeypatch.setenv("PYCUDA_NN_CACHE", str(tmp_path))
    every = MANY
    for expression in SINGLE.values():
        every = every * expression
    assert build(program(every).source(), arch, ("-Werror", "all-warnings"), nvcc)[:4] == b"\x7fELF"
