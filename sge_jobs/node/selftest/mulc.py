"""The MulC benchmark: the time of many calls of ``data[i] *= c``, by kernel and size.

Netflix (2014) measured 299 s for 128,000 calls of NPP's MulC in the cloud and 2 s with a custom
kernel, with which they replaced it. This benchmark times the same calls on the GPU of this host.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from sge_jobs.exit_codes import JOB_ERROR
from sge_jobs.node.selftest.driver import CudaError, Device, Driver, NoDriver

ROWS = ((1_000_000, 128_000), (100_000_000, 1_280))
"""Floats and calls: the size of Netflix's table, and a size that is limited by memory."""

_THREADS = 256
_FACTOR = 1.0 + 2.0**-23
_NETFLIX = "Netflix 2014, 128,000 calls: own kernel 2.01 s, NPP 299.23 s (g2.2xlarge)"

Call = Callable[[int, int, float], None]
"""Multiplies floats: address, number of floats, factor."""

Calls = Callable[[int, int, float, int], None]
"""Does this several times: address, number of floats, factor, number of calls."""

_BATCH = 640  # launches in one graph; every number of calls in ROWS is a multiple of it


class _StreamContext(ctypes.Structure):
    """NppStreamContext of NPP 13; NPP 12 has only its first fields."""

    _fields_ = (
        ("stream", c_void_p), ("device", c_int), ("multiprocessors", c_int),
        ("threads_per_multiprocessor", c_int), ("threads_per_block", c_int),
        ("shared_per_block", c_size_t), ("major", c_int), ("minor", c_int),
        ("flags", c_uint), ("workspace", c_void_p),
    )  # fmt: skip


def own_kernel(device: Device, name: str) -> Call:
    """Return a call of kernel ``mulc`` or ``mulc4``."""
    per_thread = 4 if name == "mulc4" else 1

    def call(address: int, n: int, factor: float) -> None:
        blocks = -(-n // (_THREADS * per_thread)) + (1 if per_thread > 1 else 0)
        device.launch(
            name, blocks, _THREADS, (c_ulonglong(address), c_ulonglong(n), c_float(factor))
        )

    return call


def one_by_one(call: Call) -> Calls:
    """Return calls that are launched one by one."""

    def calls(address: int, n: int, factor: float, count: int) -> None:
        for _ in range(count):
            call(address, n, factor)

    return calls


def in_graphs(device: Device, call: Call, batch: int = _BATCH) -> Calls:
    """Return calls that are launched as graphs of ``batch`` calls, the rest one by one."""
    ready: dict[tuple[int, int], c_void_p] = {}

    def calls(address: int, n: int, factor: float, count: int) -> None:
        if count >= batch and (address, n) not in ready:
            ready[address, n] = device.capture(lambda: one_by_one(call)(address, n, factor, batch))
        for _ in range(count // batch):
            device.replay(ready[address, n])
        one_by_one(call)(address, n, factor, count % batch)

    return calls


def npp(device: Device) -> Call | None:
    """Return a call of NPP's MulC; None if the library cannot be loaded."""
    library = _load_npp()
    if library is None:
        return None
    context = _StreamContext(
        device=0, multiprocessors=device.attribute("multiprocessors"),
        threads_per_multiprocessor=2048, threads_per_block=1024, shared_per_block=48 << 10,
        major=device.attribute("major"), minor=device.attribute("minor"),
    )  # fmt: skip
    function = library.nppsMulC_32f_I_Ctx

    def call(address: int, n: int, factor: float) -> None:
        code = function(c_float(factor), c_ulonglong(address), c_size_t(n), context)
        if code:
            raise CudaError("nppsMulC_32f_I_Ctx", code, f"NPP status {code}")

    return call


def _load_npp() -> Any:
    names = ["libnpps.so.13", "libnpps.so.12", "libnpps.so"]
    for folder in sys.path:
        names += sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnpps.so.*")))
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "nppsMulC_32f_I_Ctx"):
            return library
    return None


def check(device: Device, calls: Calls) -> bool:
    """Whether two ``calls`` multiply each of 1003 floats and no memory behind them."""
    n = 1003
    before = [float(place) for place in range(n + 5)]
    address = device.allocate(4 * len(before))
    try:
        device.write(address, struct.pack(f"<{len(before)}f", *before))
        calls(address, n, 3.0, 2)
        device.synchronize()
        after = struct.unpack(f"<{len(before)}f", device.read(address, 4 * len(before)))
    finally:
        device.free(address)
    return list(after) == [9 * value for value in before[:n]] + before[n:]


def seconds(device: Device, calls: Calls, n: int, count: int) -> float:
    """Return the seconds of ``count`` calls on ``n`` floats, after a warm-up."""
    address = device.allocate(4 * n)
    try:
        device.write(address, struct.pack("<f", 1.0) * n)
        calls(address, n, _FACTOR, min(count, _BATCH))
        device.synchronize()
        started = time.perf_counter()
        calls(address, n, _FACTOR, count)
        device.synchronize()
        return time.perf_counter() - started
    finally:
        device.free(address)


def _kernels(device: Device) -> Iterator[tuple[str, Calls, Calls]]:
    """Yield name, calls to time, and calls for a check of a few repetitions."""
    for name, kernel in (("scalar", "mulc"), ("float4", "mulc4")):
        call = own_kernel(device, kernel)
        yield name, one_by_one(call), one_by_one(call)
        yield f"{name} graph", in_graphs(device, call), in_graphs(device, call, batch=2)
    if (library := npp(device)) is None:
        sys.stdout.write("npp: skipped, because the library libnpps is not installed\n")
    else:
        yield "npp", one_by_one(library), one_by_one(library)


def run(device: Device, rows: Sequence[tuple[int, int]]) -> bool:
    """Print a table row and a JSON line per measurement; return whether all results are correct."""
    right = True
    for name, calls, checked in _kernels(device):
        if not check(device, checked):
            sys.stdout.write(f"{name}: WRONG RESULT\n")
            right = False
            continue
        for n, count in rows:
            taken = seconds(device, calls, n, count)
            rate = 8 * n * count / taken / 1e9
            sys.stdout.write(
                f"{name:12} n = {n:<12,} {count:8,} calls  {taken:8.3f} s {rate:8.0f} GB/s\n"
            )
            row = {"kernel": name, "n": n, "calls": count, "seconds": taken, "gb_s": rate}
            sys.stdout.write(json.dumps({"gpu": device.name, **row}) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"{_NETFLIX}\n")
    return right


def _row(text: str) -> tuple[int, int]:
    n, mark, calls = text.partition("x")
    if not mark or not n.isdigit() or not calls.isdigit() or not int(n) or not int(calls):
        raise argparse.ArgumentTypeError(
            f"invalid row '{text}': expected FLOATSxCALLS, e.g. 1000000x128000"
        )
    return int(n), int(calls)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 for a wrong result, or 100 for invalid options or no GPU."""
    parser = argparse.ArgumentParser(
        prog="mulc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--row", type=_row, action="append", metavar="FLOATSxCALLS",
        help="Time this many calls on this many floats. Repeatable."
        " Default: 1000000x128000 and 100000000x1280.",
    )  # fmt: skip
    try:
        given = parser.parse_args(argv)
    except SystemExit as error:
        return JOB_ERROR if error.code else 0
    try:
        driver = Driver()
        if not driver.count():
            raise NoDriver("no GPU is visible to this process")
        device = Device(driver, 0)
        sys.stdout.write(f"{device.name}, CUDA {driver.version()}\n")
        return 0 if run(device, given.row or ROWS) else 1
    except NoDriver as error:
        sys.stderr.write(f"Error: {error}\nRequest a GPU: qsub -l gpu=1 ...\n")
        return JOB_ERROR
    except CudaError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
