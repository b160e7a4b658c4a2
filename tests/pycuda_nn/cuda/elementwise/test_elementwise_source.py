"""Compile the kernels for the host and compare them with numpy; compile them for GPUs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.cuda.elementwise.operands import AT_ONCE, BLOCK, Chip, Sweep, sweep
from pycuda_nn.cuda.elementwise.single import OPTIONS, SINGLE, source_of
from pycuda_nn.cuda.runtime.compiler import build, find_nvcc
from pycuda_nn.expression import Expression, Input, program
from pycuda_nn.expression.operations import exp, ln, sigmoid, tanh

# The CUDA names of the kernels, for threads that run one after another.
SHIM = """
#include <math.h>
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
struct float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class V> void __stwb(V* to, V v) { *to = v; }
static struct { unsigned x; } blockIdx, threadIdx, gridDim;
"""
RUN = """
extern "C" void run_NAME(unsigned blocks, float* out, const Inputs* in, long long packs,
                         int before, int edges, const Scalars* s) {
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < BLOCK; ++threadIdx.x)
      NAME(out, *in, packs, before, edges, *s);
}
"""
ENTRIES = ("narrow", "wide", "single")
CHIP = Chip(multiprocessors=7, l2_bytes=10**9)
WAVES = 5 * 4 * BLOCK * AT_ONCE * CHIP.multiprocessors
A, DELTA, X, Y = (Input(name) for name in ("a", "delta", "x", "y"))
MANY = ln(exp(X * 0.5 + 0.25) + 1.0) / (2.0 + sigmoid(Y)) - tanh(A * DELTA)
EXPRESSIONS = {**SINGLE, "copy": X, "many": MANY}
NUMBERS = {"c": 1.7, "level": 0.3, "value": -0.9}


class OnHost:
    """Kernels of an expression, run on the host."""

    def __init__(self, expression: Expression, folder: Path) -> None:
        self.program = program(expression)
        text = SHIM + source_of(self.program) + "".join(RUN.replace("NAME", n) for n in ENTRIES)
        made = folder / "kernel.so"
        argv = ["g++", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-x", "c++", "-"]
        subprocess.run([*argv, "-o", str(made)], input=text, text=True, check=True)
        self._library = ctypes.CDLL(str(made))

    def __call__(self, plan: Sweep, out: int, inputs: list[int]) -> None:
        numbers = self.program.numbers(NUMBERS) or (0.0,)
        firsts = [address + 4 * plan.before for address in inputs]
        self._library[f"run_{plan.entry}"](
            ctypes.c_uint(plan.blocks),
            ctypes.c_void_p(out + 4 * plan.before),
            (ctypes.c_void_p * len(firsts))(*firsts),
            ctypes.c_longlong(plan.packs),
            ctypes.c_int(plan.before),
            ctypes.c_int(plan.edges),
            (ctypes.c_float * len(numbers))(*numbers),
        )


needs_host_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="this machine has no g++"
)
needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="this machine has no nvcc")


@needs_host_compiler
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_text_computes_what_the_twin_computes(name: str, tmp_path: Path) -> None:
    kernel = OnHost(EXPRESSIONS[name], tmp_path)
    rng = np.random.default_rng(1)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 88.8, -88.8, 1.0, 0.3, -0.3]
    given = {
        key: np.concatenate([rng.permutation(special), rng.normal(size=990)]).astype(np.float32)
        for key in kernel.program.inputs
    }
    out = np.full(1001, 7, np.float32)
    addresses = [array.ctypes.data for array in given.values()]
    plan = sweep(CHIP, out.ctypes.data, addresses, 1001)
    assert plan is not None
    kernel(plan, out.ctypes.data, addresses)
    expected = kernel.program.evaluate(**given, **NUMBERS)
    atol = 3e-7 if name == "many" else 1e-37  # terms of "many" cancel
    np.testing.assert_allclose(out, expected, rtol=3e-6, atol=atol)


@needs_host_compiler
def test_every_element_is_written_once_and_nothing_else(tmp_path: Path) -> None:
    """Compute x * 1.7 + y in place, to find elements that are skipped or computed twice."""
    kernel = OnHost(X * 1.7 + Y, tmp_path)
    for n in (1, 2, 3, 4, 5, 7, 8, 255, 1023, 1024, 1025, 2051, 4096 * 3 + 1):
        for shift, other in ((0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (3, 2)):
            x, y = _aligned(n + 8), _aligned(n + 8)
            x[:], y[:] = np.arange(n + 8) + 1, 0.5
            expected = x.copy()
            expected[4 + shift :][:n] = x[4 + shift :][:n] * np.float32(1.7) + np.float32(0.5)
            addresses = [x[4 + shift :].ctypes.data, y[4 + other :].ctypes.data]
            plan = sweep(CHIP, addresses[0], addresses, n)
            assert plan is not None
            assert plan.entry == ("narrow" if shift == other else "single")
            kernel(plan, addresses[0], addresses)
            np.testing.assert_array_equal(x, expected, err_msg=f"{n} {shift} {other}")


@needs_host_compiler
def test_the_same_with_several_packs_a_thread(tmp_path: Path) -> None:
    kernel = OnHost(X * 1.7, tmp_path)
    for shift in range(4):
        x = _aligned(WAVES + 11)
        x[:] = 1
        out = x.ctypes.data + 4 * shift
        plan = sweep(CHIP, out, [out], WAVES + 7)
        assert plan is not None
        assert plan.entry == "wide"
        kernel(plan, out, [out])
        assert (x[shift : shift + WAVES + 7] == np.float32(1.7)).all()
        assert x.astype(np.float64).sum() == pytest.approx(4 + 1.7 * (WAVES + 7), rel=1e-7)


def _aligned(n: int) -> np.ndarray:
    """Return n float32; the address of the first is a multiple of 16."""
    room = np.zeros(n + 4, np.float32)
    first = -room.ctypes.data % 16 // 4
    return room[first : first + n]


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
    code = build(source_of(program(every)), arch, (*OPTIONS, "-Werror", "all-warnings"), nvcc)
    assert code.startswith(b"\x7fELF")


@needs_nvcc
@pytest.mark.parametrize("name", ["mulc", "ln", "many"])
def test_packs_are_loaded_and_stored_by_one_instruction(name: str, tmp_path: Path) -> None:
    """A store of 16 bytes that the compiler splits into four costs a tenth of the bandwidth."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    given, made = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    chosen = program(EXPRESSIONS[name])
    given.write_text(source_of(chosen))
    subprocess.run([nvcc, "--ptx", "-arch=sm_90", *OPTIONS, "-o", made, given], check=True)
    for part in made.read_text().split(".entry ")[1:]:
        kind = part.partition("(")[0]
        singles, packs = {"narrow": (1, 1), "wide": (1, 2), "single": (4, 0)}[kind]
        assert part.count("st.global.f32") == singles
        assert part.count("st.global.wb.v4.f32") == packs
        assert part.count("ld.global.v4.f32") == packs * len(chosen.inputs)
