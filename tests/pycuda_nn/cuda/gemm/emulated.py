"""Runs the built-in products on the CPU, cluster after cluster."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

from pycuda_nn.cuda.gemm.sgemm import FILES, Tiling
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.step.sources import STEP_FILES

_EMULATOR = Path(__file__).parents[1] / "tiny" / "emulator.h"
_SHARED = "__shared__ __align__(16) float shared[WORDS];"
_DEVICE = """
inline void copy_pack(float* to, const float* from, bool there) {
  if (there) memcpy(to, from, 16); else memset(to, 0, 16);
}
inline void commit_copies() {}
template <int N> void wait_for_copies() {}
inline void cluster_barrier() { emulator::meet(emulator::everyone[0], SPLIT * 256); }
inline Pack<float> read_of(const float* at, int rank) {
  const auto& mine = *emulator::current->block;
  return *(const Pack<float>*)(emulator::blocks_of_grid[rank]->shared + (at - mine.shared));
}
"""
_ENTRY = """
static int rank_of(const emulator::Block* block) {
  for (int rank = 0;; rank++)
    if (emulator::blocks_of_grid[rank].get() == block) return rank;
}
extern "C" bool emulate(const Task* task, int across, int down, unsigned seed) {
  blockDim = {256, 1, 1};
  gridDim = {across, down, SPLIT};
  for (int y = 0; y < down; y++)
    for (int x = 0; x < across; x++) {
      emulator::kernel = [=] {
        emulator::Block* block = emulator::current->block;
        block->index = {x, y, rank_of(block)};
        sgemm(*task);
      };
      if (!emulator::run(SPLIT, 256, 4 * WORDS, seed + x + 7 * y)) return false;
    }
  return true;
}
extern "C" bool emulate_biases(const Biases* of, int blocks) {
  for (int x = 0; x < blocks; x++) {
    emulator::kernel = [=] { emulator::current->block->index = {x, 0, 0}; biases(*of); };
    if (!emulator::run(1, 256, 16, x)) return false;
  }
  return true;
}
"""


def library(folder: Path, tiling: Tiling, **values: int) -> Any:
    """Compile the kernel with these macros; return its entries for ctypes."""
    device, *files = FILES
    assert device.endswith("device.cuh")
    text = kernel_source(*STEP_FILES) + _DEVICE + kernel_source(*files)
    assert _SHARED in text
    text = text.replace(_SHARED, "float* shared = emulator::current->block->shared;")
    names = "#define __align__(n) __attribute__((aligned(n)))\n#define __restrict__\n"
    code, made = folder / "sgemm.cc", folder / "sgemm.so"
    code.write_text(_EMULATOR.read_text() + names + text + _ENTRY)
    values |= {"TILE_M": tiling.m, "TILE_N": tiling.n, "SPLIT": tiling.split, "MASTER": 0}
    options = ["-O1", "-fno-strict-aliasing", "-fno-gnu-unique", "-std=c++17", "-w", "-shared"]
    options += ["-fPIC", "-DT_FLOAT", "-DGRADIENT"]
    options += [f"-D{name}={value}" for name, value in values.items()]
    subprocess.run(["g++", *options, "-o", str(made), str(code)], check=True)
    found = ctypes.CDLL(str(made))
    found.emulate.restype = found.emulate_biases.restype = ctypes.c_bool
    return found
