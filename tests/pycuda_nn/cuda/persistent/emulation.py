"""Compile the persistent kernel for the CPU: see emulator.h."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.device_code import FILES
from pycuda_nn.cuda.persistent.kernel import constants
from pycuda_nn.cuda.persistent.plan import KernelPlan
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from tests.pycuda_nn.cuda.persistent.persistent_cases import Case

Array = npt.NDArray[Any]
_HERE = Path(__file__).parent
_SHARED = "extern __shared__ __align__(128) unsigned char memory[];"
_ENTRIES = """
extern "C" bool emulate(const Persistent* a, unsigned seed, bool in_order) {
  emulator::kernel = [a] { train_steps(*a); };
  return emulator::run(BLOCKS, THREADS, sizeof(Shared), seed, in_order);
}
extern "C" int exchange_words() { return 3 * TURN; }
extern "C" int shared_bytes() { return sizeof(Shared); }
"""


def emulated_source(case: Case, plan: KernelPlan) -> str:
    """Return C++ for the host; the emulator replaces the first two files."""
    kernel = kernel_source(*FILES[2:])
    assert kernel.count(_SHARED) == 1
    kernel = kernel.replace(_SHARED, "unsigned char* memory = emulator::current->block->shared;")
    emulator = (_HERE / "emulator.h").read_text()
    return plan.source() + emulator + plan.variant.functions + kernel + _ENTRIES


class Emulation:
    """The kernel of a plan on the CPU."""

    def __init__(
        self, case: Case, plan: KernelPlan, folder: Path, *, source: str | None = None
    ) -> None:
        self.case, self.plan = case, plan
        given, made = folder / "kernel.cc", folder / "kernel.so"
        given.write_text(source or emulated_source(case, plan))
        macro = f"-D{PRECISIONS[case.precision].macro}"
        flags = ["-std=c++17", "-O1", "-fno-strict-aliasing", "-w", "-shared", "-fPIC", macro]
        subprocess.run(["g++", *flags, "-o", str(made), str(given)], check=True)
        self._library = ctypes.CDLL(str(made))
        self._library.emulate.restype = ctypes.c_bool
        assert self._library.exchange_words() == plan.exchange_words
        assert self._library.shared_bytes() == plan.shared_bytes

    def run(
        self,
        arrays: dict[str, Array],
        launches: tuple[int, ...],
        *,
        seed: int = 0,
        in_order: bool = False,
    ) -> dict[str, Array]:
        """Train in launches of the given numbers of steps; ``seed`` determines the schedule."""
        layout = ParameterLayout(self.case.network)
        params = layout.spread(arrays["params"])
        state = {
            "params": params,
            "first": np.zeros_like(params),
            "second": np.zeros_like(params),
            "losses": np.full(sum(launches), np.nan, dtype=np.float32),
        }
        given = {name: arrays[name] for name in ("y", "order", "rates", "clock")} | state
        given["x"] = _aligned(self.case.padded_x(arrays["x"]))
        first = 0
        for steps in launches:
            empty = np.full(self.plan.exchange_words, 0xFFFFFFFF, dtype=np.uint32)
            given["exchange"], given["counter"] = _aligned(empty), np.zeros(1, dtype=np.int32)
            argument = structs.Persistent(
                **{name: array.ctypes.data for name, array in given.items()},
                first_step=first,
                n_steps=steps,
                **constants(self.case.stack, self.case.recipe),
            )
            ended = self._library.emulate(ctypes.byref(argument), seed, in_order)
            assert ended, "the kernel deadlocks"
            first += steps
        return state


def _aligned(array: Array) -> Array:
    """Return a copy whose address is a multiple of 64, as in GPU memory."""
    room = np.zeros(array.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    out = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out
