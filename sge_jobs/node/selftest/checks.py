"""The tests of one GPU: memory, arithmetic, bandwidth, and the driver's error counters."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_float, c_uint, c_ulonglong
from typing import Any

from sge_jobs.node.gpus import health
from sge_jobs.node.selftest import expected
from sge_jobs.node.selftest.driver import CudaError, Device
from sge_jobs.node.selftest.report import Check

PATTERNS = (
    (0x00000000, False), (0xFFFFFFFF, False), (0xAAAAAAAA, False), (0x55555555, False),
    (0x00000000, True), (0xFFFFFFFF, True),
)  # fmt: skip
"""Words to write to memory, and whether they are combined with their address."""

_CHUNK = 1 << 30
_LEAST = 1 << 20
_SPARE = 256 << 20
_SHARE = 0.92
_SEEDS = 64
_ROUNDS = 256
_LOOPS = 64
_R = expected.as_float32(3.99)
_COPY = 512 << 20
_HOST_COPY = 64 << 20
_COPIES = 10
_SHARE_OF_PEAK = 0.4
_MIN_DEVICE_GB_S = 20.0


def memory(device: Device, until: float, say: Callable[[str], None]) -> Check:
    """Write and read most of the free memory with every pattern, repeated until ``until``."""
    chunks = list(_allocate_most(device))
    if not chunks:
        return Check("memory", False, "no free memory: another process may use this GPU")
    size = sum(length for _, length in chunks)
    faults = device.allocate(24)
    passes = 0
    try:
        while passes == 0 or time.monotonic() < until:
            for pattern, addressed in PATTERNS:
                count, first, bits = _pattern_pass(device, chunks, faults, pattern, addressed)
                if count:
                    detail = f"{count} wrong words with {pattern:#010x}, first at {4 * first:#x}"
                    return Check(
                        "memory", False, f"{detail}, bits {bits:#010x}", _size(size, passes)
                    )
            passes += 1
            say(f"memory: {size / 2**30:.1f} GiB, pass {passes}")
    finally:
        for address in (faults, *(address for address, _ in chunks)):
            device.free(address)
    detail = f"{size / 2**30:.1f} GiB, {len(PATTERNS)} patterns, {passes} times"
    return Check("memory", True, detail, _size(size, passes))


def _size(size: int, passes: int) -> dict[str, float]:
    return {"gib": size / 2**30, "passes": passes}


def _allocate_most(device: Device) -> Iterator[tuple[int, int]]:
    left = int(device.free_bytes() * _SHARE) - _SPARE
    length = _CHUNK
    while left >= _LEAST:
        length = min(length, left) & ~0xFF
        try:
            yield device.allocate(length), length
        except CudaError as error:
            if not error.out_of_memory:
                raise
            length //= 2
            if length < _LEAST:
                return
            continue
        left -= length


def _pattern_pass(
    device: Device, chunks: Sequence[tuple[int, int]], faults: int, pattern: int, addressed: bool
) -> tuple[int, int, int]:
    """Return the number of wrong words, the index of the first, and the wrong bits."""
    device.write(faults, struct.pack("<QQQ", 0, (1 << 64) - 1, 0))
    for kernel in ("fill", "verify"):
        first = 0
        for address, length in chunks:
            words = length // 4
            arguments: list[Any] = [c_ulonglong(address), c_ulonglong(words), c_ulonglong(first)]
            arguments += [c_uint(pattern), c_uint(addressed)]
            if kernel == "verify":
                arguments.append(c_ulonglong(faults))
            device.launch(kernel, _blocks(device) * 8, 256, arguments)
            first += words
        device.synchronize()
    count, lowest, bits = struct.unpack("<QQQ", device.read(faults, 24))
    return count, lowest, bits


def _blocks(device: Device) -> int:
    return max(1, device.attribute("multiprocessors"))


def arithmetic(device: Device, until: float, say: Callable[[str], None]) -> Check:
    """Compute two chains on every multiprocessor and compare them with results of Python."""
    floats = [expected.as_float32((place + 0.5) / _SEEDS) for place in range(_SEEDS)]
    words = [place * 2654435761 & expected.MASK for place in range(_SEEDS)]
    float_answers = [expected.float_chain(seed, _ROUNDS, _R) for seed in floats]
    word_answers = [expected.integer_chain(seed, _ROUNDS) for seed in words]
    tables = expected.pack_floats(floats + float_answers) + expected.pack_words(
        words + word_answers
    )
    data = device.allocate(len(tables) + 8)
    faults = data + len(tables)
    launches = 0
    try:
        device.write(data, tables + bytes(8))
        while launches == 0 or time.monotonic() < until:
            for kernel, base, more in (
                ("float_chain", data, [c_float(_R)]), ("integer_chain", data + 8 * _SEEDS, []),
            ):  # fmt: skip
                arguments: list[Any] = [c_ulonglong(base), c_ulonglong(base + 4 * _SEEDS)]
                arguments += [c_uint(_SEEDS), c_uint(_ROUNDS), c_uint(_LOOPS), *more]
                device.launch(kernel, _blocks(device) * 8, 256, [*arguments, c_ulonglong(faults)])
            device.synchronize()
            launches += 1
        (wrong,) = struct.unpack("<Q", device.read(faults, 8))
    finally:
        device.free(data)
    chains = 2 * launches * _blocks(device) * 8 * 256 * _LOOPS
    say(f"arithmetic: {chains} chains, {wrong} wrong")
    detail = f"{wrong} of {chains} chains of {_ROUNDS} steps wrong" if wrong else f"{chains} chains"
    return Check("arithmetic", wrong == 0, detail, {"chains": chains, "wrong": wrong})


def bandwidth(device: Device, floors: tuple[float, float], say: Callable[[str], None]) -> Check:
    """Compare the rates of copies on the device and from and to the host with ``floors`` (GB/s)."""
    size = min(_COPY, max(1 << 20, device.free_bytes() // 4 & ~0xFF))
    host_size = min(_HOST_COPY, size)
    first, second = device.allocate(size), device.allocate(size)
    host = device.allocate_host(host_size)
    try:
        figures = {
            "device_gb_s": 2 * _rate(device, "DtoD", second, first, size),
            "to_device_gb_s": _rate(device, "HtoD", first, host, host_size),
            "from_device_gb_s": _rate(device, "DtoH", host, first, host_size),
        }
    finally:
        device.free_host(host)
        device.free(first)
        device.free(second)
    least = {"device_gb_s": floors[0], "to_device_gb_s": floors[1], "from_device_gb_s": floors[1]}
    slow = [
        f"{key[:-5].replace('_', ' ')} {figures[key]:.1f} GB/s, at least {floor:.1f} expected"
        for key, floor in least.items()
        if figures[key] < floor
    ]
    text = ", ".join(
        f"{key[:-5].replace('_', ' ')} {rate:.1f} GB/s" for key, rate in figures.items()
    )
    say(f"bandwidth: {text}")
    return Check("bandwidth", not slow, "; ".join(slow) or text, figures)


def _rate(device: Device, kind: str, target: int, source: int, size: int) -> float:
    device.copy(kind, target, source, size)
    start = device.record()
    for _ in range(_COPIES):
        device.copy(kind, target, source, size)
    seconds = device.seconds_between(start, device.record())
    return _COPIES * size / max(seconds, 1e-9) / 1e9


def expected_bandwidth(device: Device) -> float:
    """Return the lowest accepted GB/s of copies on the device, counting reads and writes."""
    clock, bits = device.attribute("memory_clock_khz"), device.attribute("memory_bus_bits")
    peak = 2e3 * clock * bits / 8 / 1e9
    return max(_MIN_DEVICE_GB_S, _SHARE_OF_PEAK * peak)


def health_counters(uuid: str, bus_id: str) -> Check:
    """Check ECC errors, remapped rows and Xid messages of the last day."""
    found = health.counters(uuid)
    problems = [f"{key.replace('_', ' ')}: {value}" for key, value in found.items() if value]
    notes = [] if found else ["this GPU has no error counters"]
    try:
        numbers = health.xids(bus_id, *health.kernel_log())
    except OSError:
        notes.append("cannot read the kernel log")
        numbers = []
    for number in sorted(set(numbers)):
        words = f"Xid {number}, {numbers.count(number)} times"
        if number in health.FATAL_XIDS:
            problems.append(f"{words}: {health.FATAL_XIDS[number]}")
        else:
            notes.append(words)
    figures = {key: float(value) for key, value in found.items()}
    detail = "; ".join(problems or notes) or "no errors counted"
    return Check("health", not problems, detail, {**figures, "xids": len(numbers)})
