"""Repeat Netflix's table of 2014: ``data[i] *= c`` with our kernel and with NPP; add fusion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pycuda.driver as cuda

from pycuda_nn.bench.machine import describe
from pycuda_nn.bench.tables import CALLS, MulcReport, MulcRow
from pycuda_nn.bench.timing import Call, race
from pycuda_nn.cuda.elementwise.kernel import Elementwise
from pycuda_nn.cuda.elementwise.npp import Npp, open_npp
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.errors import DeviceError
from pycuda_nn.expression import Expression, Input
from pycuda_nn.expression.operations import exp, ln

_C = -1.0  # repeated products keep the magnitude of the values
_CHAIN = (("MulC", 0.5), ("AddC", 0.25), ("Exp", 0.0), ("AddC", 1.0), ("Ln", 0.0))
_CHECKED = 1000  # elements checked at each end of the vector


def chain() -> Expression:
    """Return ln(exp(0.5 x + 0.25) + 1): five operations, bounded when repeated."""
    return ln(exp(Input("x") * 0.5 + 0.25) + 1.0)


def measure(
    device: Device, sizes: Sequence[int], limit_s: float, say: Callable[[str], None]
) -> MulcReport:
    """Time all variants for each size; the context of ``device`` must be active.

    Args:
        sizes: Sizes of the vectors, in floats.
        limit_s: Approximate time limit of each variant of each size.
        say: Called with a progress line before each measurement.

    Raises:
        OutOfDeviceMemory: A vector does not fit.
        DeviceError: A kernel returned a wrong value.
    """
    stream, memory, rows = cuda.Stream(), Memory(device), []
    bench = _Bench(Elementwise(device), open_npp(device, stream), stream)
    for size in sizes:
        say(f"mulc: {size:,} floats")
        address = memory.allocate(4 * size, f"a vector of {size:,} floats")
        try:
            rows.append(bench.row(address, size, limit_s))
        finally:
            stream.synchronize()
            memory.free()
    version = None if bench.npp is None else bench.npp.version
    return MulcReport(machine=describe(device), npp=version, rows=tuple(rows))


class _Bench:
    def __init__(self, family: Elementwise, npp: Npp | None, stream: cuda.Stream) -> None:
        self.npp = npp
        self._family, self._stream = family, stream

    def row(self, address: int, size: int, limit_s: float) -> MulcRow:
        own = {"mulc": Input("x") * _C, "fused": chain()}
        calls = {name: self._own(formula, address, size) for name, formula in own.items()}
        if self.npp is not None:
            calls["npp_mulc"] = self.npp.call("MulC", address, size, _C)
            steps = [self.npp.call(name, address, size, value) for name, value in _CHAIN]
            calls["npp_chain"] = functools.partial(_in_turn, steps)
        timed = race(self._stream, calls, CALLS, limit_s)
        none = ("npp_mulc", "npp_mulc_graph", "npp_chain", "npp_chain_graph")
        seconds: dict[str, Any] = dict.fromkeys(none)
        seconds |= {name: timing.each_s for name, timing in timed.items()}
        return MulcRow(size=size, calls=timed["mulc"].calls, **seconds)

    def _own(self, expression: Expression, address: int, size: int) -> Call:
        """Return the launch in place, after one run whose values were checked."""
        kernel = self._family.compile(expression)
        call = kernel.bind(address, [address], size, kernel.program.numbers({}), self._stream)
        given = np.random.default_rng(0).uniform(0.5, 1.5, min(size, 2**20)).astype(np.float32)
        for first in range(0, size, len(given)):
            cuda.memcpy_htod(address + 4 * first, given[: size - first])
        call()
        self._stream.synchronize()
        expected = kernel.program.evaluate(x=given)
        ends = np.empty(min(_CHECKED, size), np.float32)
        for first in (0, size - len(ends)):
            cuda.memcpy_dtoh(ends, address + 4 * first)
            right = expected[(first + np.arange(len(ends))) % len(given)]
            if not np.allclose(ends, right, rtol=1e-5, atol=1e-6):
                raise DeviceError(f"mulc: wrong values at element {first:,} of {size:,}")
        return call


def _in_turn(steps: Sequence[Call]) -> None:
    for step in steps:
        step()
