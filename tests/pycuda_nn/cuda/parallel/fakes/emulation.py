"""Compile the kernels of the exchange for the CPU: see emulator.h."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pycuda_nn.cuda.runtime.compiler import kernel_source

_HERE = Path(__file__).parent
KERNELS = ("exchange", "send_sums", "bias_sums", "apply", "gather_dealt")
_TO_HALF = 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));'
_TO_FLOAT = 'asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));'
_ENTRIES = """
static std::function<void()> kernel_of(const emulator::Operation& op) {
  const auto* x = (const Exchange*)op.arguments;
  const auto* dealt = (const Dealt*)op.arguments;
  switch (op.kind) {
    case 0: return [x] { exchange(*x); };
    case 1: return [x] { send_sums(*x); };
    case 2: return [x] { bias_sums(*x); };
    case 3: return [x] { apply(*x); };
    case 4: return [dealt] { gather_dealt(*dealt); };
    default: return nullptr;
  }
}
// Returns how many operations have ended.
extern "C" int emulate(const emulator::Operation* ops, int n, int ranks, unsigned seed,
                       unsigned* words, int stop_at, int mutation, emulator::Host host) {
  emulator::mutation = mutation;
  return emulator::run(ops, n, ranks, seed, words, stop_at, host, kernel_of);
}
extern "C" int bytes_of_exchange() { return sizeof(Exchange); }
extern "C" int bytes_of_dealt() { return sizeof(Dealt); }
"""


class _Operation(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int)
            for name in ("kind", "rank", "blocks", "threads", "held", "n_after")
        ),
        ("after", ctypes.POINTER(ctypes.c_int)),
        ("arguments", ctypes.c_void_p),
    )


_HOST = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int)


# Statements without which some schedule must fail.
NEEDED = {
    "wait for gradients": "if (me < RANKS) wait_flag(x, x.flags[x.rank] + READY + me, turn);",
    "all threads wait for gradients": "__syncthreads();\n  const int stride",
    "wait for weights": "wait_flag(x, x.flags[x.rank] + DONE + me, turn);",
    "order the stores of other blocks": "__threadfence_system();  // also",
}


def _with_mutations(text: str) -> str:
    """Skip a statement of NEEDED by a number at run time."""
    for number, old in enumerate(NEEDED.values(), start=1):
        assert text.count(old) == 1, old
        text = text.replace(old, f"if (emulator::mutation != {number}) {old}")
    return text


def emulated_source(files: Sequence[str]) -> str:
    """Return C++ for the host; the emulator replaces peer.cuh."""
    text = kernel_source(*(name for name in files if not name.endswith("peer.cuh")))
    for old, new in (
        (_TO_HALF, "{ const _Float16 z = (_Float16)x; memcpy(&y.bits, &z, 2); }"),
        (_TO_FLOAT, "{ _Float16 z; memcpy(&z, &x.bits, 2); y = z; }"),
        ("float* sums[MOST]", "Late* sums[MOST]"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    shared = r"__shared__ (\w+) (\w+)((?:\[\w+\])*);"
    text, n = re.subn(shared, r"auto& \2 = emulator::shared<\1\3>(__LINE__);", text)
    assert n == text.count("emulator::shared")
    assert "__shared__" not in text
    return (_HERE / "emulator.h").read_text() + _with_mutations(text) + _ENTRIES


class Emulation:
    """The kernels for some options."""

    def __init__(self, options: Sequence[str], files: Sequence[str], folder: Path) -> None:
        from pycuda_nn.cuda.parallel.structs import Dealt, Exchange

        given, made = folder / "exchange.cc", folder / "exchange.so"
        given.write_text(emulated_source(files))
        flags = ["-std=c++17", "-O1", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-shared",
                 "-fPIC"]  # fmt: skip
        subprocess.run(["g++", *flags, *options, "-o", str(made), str(given)], check=True)
        self._library = ctypes.CDLL(str(made))
        assert self._library.bytes_of_exchange() == ctypes.sizeof(Exchange)
        assert self._library.bytes_of_dealt() == ctypes.sizeof(Dealt)

    def run(
        self,
        operations: Sequence[Any],
        host: Callable[[Any, bool], None],
        *,
        ranks: int,
        words: Any,
        seed: int = 0,
        stop_at: int = -1,
        held: Callable[[Any], bool] = lambda _: False,
        without: str = "",
    ) -> int:
        """Run the operations of a fake machine; return how many have ended, or -1 for a deadlock.

        Args:
            host: Called at the beginning and at the end of what is not one of the kernels.
            ranks: Number of ranks.
            words: uint32 words of the host.
            seed: Determines the schedule.
            stop_at: When the host stops the ranks.
            held: Whether an operation never starts.
            without: Name of a statement of NEEDED to skip.
        """
        numbers = {operation: i for i, operation in enumerate(operations)}
        given = (_Operation * len(operations))()
        kept = []
        for one, to in zip(operations, given, strict=True):
            after = [numbers[before] for before in one.after]
            to.kind = KERNELS.index(one.name) if one.name in KERNELS else -1
            to.rank, to.blocks, to.threads = one.rank, one.blocks, one.threads
            to.held, to.n_after = held(one), len(after)
            to.after = (ctypes.c_int * len(after))(*after)
            if to.kind >= 0:
                kept.append(ctypes.create_string_buffer(one.arguments, len(one.arguments)))
                to.arguments = ctypes.addressof(kept[-1])
        failures: list[BaseException] = []

        def called(number: int, end: int) -> None:
            try:
                host(operations[number], bool(end))
            except BaseException as error:  # noqa: BLE001 - ctypes would print and ignore it
                failures.append(error)

        mutation = 1 + [*NEEDED].index(without) if without else 0
        address = ctypes.c_void_p(words.ctypes.data)
        ended: int = self._library.emulate(
            given, len(operations), ranks, seed, address, stop_at, mutation, _HOST(called)
        )
        if failures:
            raise failures[0]
        return ended
