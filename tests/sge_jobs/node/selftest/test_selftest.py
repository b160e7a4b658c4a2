"""The GPU self-test on a fake GPU with kernels in Python and injected faults."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sge_jobs.node.gpus import health
from sge_jobs.node.selftest import checks, driver, expected, mulc, selftest
from sge_jobs.node.selftest.driver import CudaError, NoDriver

MIB = 1 << 20


class FakeGpu:
    """Device memory in numpy; ``stuck`` is a (byte address, bit) that always reads as 1."""

    name, uuid, bus_id = "Made-up GPU", "GPU-fake", "0000:3b:00.0"

    def __init__(self, *, free: int = MIB, gb_s: float = 1000.0) -> None:
        self.memory = np.zeros(64 * MIB, np.uint8)
        self.free_now, self.next, self.gb_s = free, 256, gb_s
        self.stuck: tuple[int, int] | None = None
        self.wrong_sums = 0
        self.lost = False
        self.moved = 0

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def replay(self, graph: Callable[[], None]) -> None:
        graph()

    def attribute(self, name: str) -> int:
        return {"multiprocessors": 1, "memory_clock_khz": 1000000, "memory_bus_bits": 4096}[name]

    def free_bytes(self) -> int:
        return self.free_now

    def allocate(self, size: int) -> int:
        if size > self.free_now + 2 * MIB:
            raise CudaError("cuMemAlloc", 2, "out of memory")
        address, self.next = self.next, self.next + (size + 255 & ~255)
        return address

    def free(self, address: int) -> None:
        pass

    allocate_host, free_host = allocate, free

    def write(self, address: int, data: bytes) -> None:
        self.memory[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def read(self, address: int, size: int) -> bytes:
        return self.memory[address : address + size].tobytes()

    def words(self, address: int, count: int) -> Any:
        return self.memory[address : address + 4 * count].view(np.uint32)

    def copy(self, kind: str, target: int, source: int, size: int) -> None:
        self.moved += size

    def record(self) -> int:
        return self.moved

    def seconds_between(self, start: int, end: int) -> float:
        return (end - start) / (self.gb_s * 1e9)

    def synchronize(self) -> None:
        if self.lost:
            raise CudaError("cuCtxSynchronize", 214, "uncorrectable ECC error encountered")

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        getattr(self, f"_{name}")(*(argument.value for argument in arguments))

    def _expected(self, n: int, first: int, pattern: int, addressed: int) -> Any:
        return np.array(
            [expected.expected_word(first + i, pattern, bool(addressed)) for i in range(n)],
            np.uint32,
        )

    def _fill(self, data: int, n: int, first: int, pattern: int, addressed: int) -> None:
        self.words(data, n)[:] = self._expected(n, first, pattern, addressed)
        if self.stuck is not None and data <= self.stuck[0] < data + 4 * n:
            self.memory[self.stuck[0]] |= 1 << self.stuck[1]

    def _verify(
        self, data: int, n: int, first: int, pattern: int, addressed: int, faults: int
    ) -> None:
        wrong = self.words(data, n) ^ self._expected(n, first, pattern, addressed)
        count, lowest, bits = struct.unpack("<QQQ", self.read(faults, 24))
        if wrong.any():
            count += int((wrong != 0).sum())
            lowest = min(lowest, first + int(np.argmax(wrong != 0)))
            bits |= int(np.bitwise_or.reduce(wrong))
        self.write(faults, struct.pack("<QQQ", count, lowest, bits))

    def _chain(self, right: bool, faults: int) -> None:
        (count,) = struct.unpack("<Q", self.read(faults, 8))
        self.write(faults, struct.pack("<Q", count + self.wrong_sums + (0 if right else 1)))

    def _float_chain(
        self, seeds: int, answers: int, count: int, rounds: int, loops: int, r: float, faults: int
    ) -> None:
        (seed,) = struct.unpack("<f", self.read(seeds + 12, 4))
        (answer,) = struct.unpack("<f", self.read(answers + 12, 4))
        self._chain(expected.float_chain(seed, rounds, r) == answer, faults)

    def _integer_chain(
        self, seeds: int, answers: int, count: int, rounds: int, loops: int, faults: int
    ) -> None:
        right = expected.integer_chain(int(self.words(seeds, 9)[8]), rounds)
        self._chain(right == int(self.words(answers, 9)[8]), faults)

    def _mulc(self, data: int, n: int, factor: float) -> None:
        self.memory[data : data + 4 * n].view(np.float32)[:] *= np.float32(factor)

    _mulc4 = _mulc


class FakeDriver:
    """A driver with one GPU."""

    def __init__(self) -> None:
        pass

    def version(self) -> str:
        return "13.0"

    def count(self) -> int:
        return 1


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    fake = FakeGpu()
    monkeypatch.setattr(checks, "_SPARE", 0)
    monkeypatch.setattr(checks, "_SHARE", 1.0)
    monkeypatch.setattr(checks, "_CHUNK", MIB // 4)
    monkeypatch.setattr(checks, "_LEAST", 4096)
    monkeypatch.setattr(checks, "_ROUNDS", 32)
    monkeypatch.setattr(selftest, "Driver", FakeDriver)
    monkeypatch.setattr(selftest.examine, "__defaults__", (lambda driver, index: fake,))
    monkeypatch.setattr(health, "counters", lambda uuid: {"ecc_uncorrected": 0})
    monkeypatch.setattr(health, "kernel_log", lambda: ("", 0.0))
    return fake


def outcome(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    code = selftest.main(["--seconds", "0.01", "--json", "--quiet", *argv])
    report = json.loads(capsys.readouterr().out)
    report["checks"] = {check["name"]: check for check in report["checks"]}
    return code, report


def test_a_sound_gpu_passes(gpu: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = outcome(capsys)
    assert code == 0, report
    assert report["passed"] is True
    assert report["uuid"] == "GPU-fake"
    assert list(report["checks"]) == [
        "health", "bandwidth", "arithmetic", "memory", "health afterwards",
    ]  # fmt: skip
    assert report["checks"]["memory"]["figures"]["gib"] == MIB / 2**30


def test_one_stuck_bit_is_found_and_placed(
    gpu: FakeGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.stuck = (7 * MIB // 2 + 2, 5)
    code, report = outcome(capsys)
    assert code == 99
    memory = report["checks"]["memory"]
    assert not memory["passed"]
    assert memory["detail"].startswith("1 ")
    assert "bits 0x00200000" in memory["detail"]


def test_a_wrong_sum_is_found(gpu: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
    gpu.wrong_sums = 1
    code, report = outcome(capsys)
    assert (code, report["checks"]["arithmetic"]["passed"]) == (99, False)


def test_a_slow_gpu_is_found(gpu: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
    gpu.gb_s = 100.0  # its memory clock allows 1024
    code, report = outcome(capsys, "--bad-exit", "7")
    assert (code, report["checks"]["bandwidth"]["passed"]) == (7, False)
    assert "device 200.0 GB/s" in report["checks"]["bandwidth"]["detail"]
    assert "409.6" in report["checks"]["bandwidth"]["detail"]
    assert outcome(capsys, "--min-device-gb-s", "100")[0] == 0


def test_an_error_of_the_driver_is_a_failed_test(
    gpu: FakeGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.lost = True
    code, report = outcome(capsys)
    assert code == 99
    assert "uncorrectable ECC" in report["checks"]["memory"]["detail"]
    assert report["checks"]["bandwidth"]["passed"]


def test_a_gpu_without_free_memory_fails(gpu: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
    gpu.free_now = 1000
    code, report = outcome(capsys)
    memory = report["checks"]["memory"]
    assert (code, memory["passed"], memory["figures"]) == (99, False, {})


def test_counted_errors_and_xids_of_hardware_fail(
    gpu: FakeGpu, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "4,1,9000000000,-;NVRM: Xid (PCI:0000:3b:00): {}, pid=1, name=x\n"
    for number, code in ((31, 0), (79, 99)):
        text = log.format(number)
        monkeypatch.setattr(health, "kernel_log", lambda text=text: (text, 9100.0))
        assert outcome(capsys)[0] == code
    monkeypatch.setattr(health, "kernel_log", lambda: ("", 0.0))
    monkeypatch.setattr(health, "counters", lambda uuid: {"rows_failed": 1})
    code, report = outcome(capsys)
    assert (code, report["checks"]["health"]["detail"]) == (99, "rows failed: 1")


def test_wrong_calls_and_no_gpu_are_job_errors(
    gpu: FakeGpu, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for argv in (["--seconds", "x"], ["--seconds", "0"], ["--nonsense"]):
        with pytest.raises(SystemExit) as ended:
            selftest.main(argv)
        assert ended.value.code == 100
    assert selftest.main(["--device", "3"]) == 100

    def none(self: object) -> None:
        raise NoDriver("cannot load libcuda.so.1")

    monkeypatch.setattr(FakeDriver, "__init__", none)
    assert selftest.main([]) == 100
    assert "libcuda.so.1" in capsys.readouterr().err


def test_people_read_a_table(gpu: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
    assert selftest.main(["--seconds", "0.01"]) == 0
    done = capsys.readouterr()
    assert "Made-up GPU" in done.out
    assert "  passed  memory: " in done.out
    assert "FAILED" not in done.out
    assert "memory: passed" in done.err


def test_xids_are_those_of_this_gpu_and_of_the_last_day() -> None:
    log = (
        "6,1,1000000,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1\n"
        "6,2,90000000000,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off\n"
        "6,3,90000000000,-;NVRM: Xid (PCI:0000:af:00): 79, GPU has fallen off\n"
        "6,4,90000000000,-;usb 1-1: new device\n"
    )
    assert health.xids("0000:3b:00.0", log, 90001.0) == [79]
    assert health.xids("0000:3B:00.0", log.replace("6,", "x "), 0.0) == [48, 79]


def test_rounding_is_that_of_float32() -> None:
    values = np.random.default_rng(1).random(2000) * 10.0 ** np.arange(-20, 20).repeat(50)
    for value in values:
        exact = Fraction(float(value)) * Fraction(1, 3)
        nearest = np.float32(np.longdouble(value) / 3)
        assert float(expected.rounded(exact)) == float(nearest)
    assert float(expected.rounded(Fraction((1 << 24) + 1))) == float(1 << 24)
    assert expected.rounded(Fraction(0)) == 0


def test_the_float_chain_is_that_of_float32_arithmetic() -> None:
    """The product x x is exact in float64, and almost always its difference from x."""
    r = expected.as_float32(3.99)
    for seed in (0.1, 0.3, 0.77):
        x = np.float32(seed)
        for _ in range(100):
            fused = np.float32(np.float64(x) - np.float64(x) * np.float64(x))
            x = np.float32(r) * fused
        assert expected.float_chain(expected.as_float32(seed), 100, r) == float(x)


def test_mulc_is_checked_before_it_is_timed(
    gpu: FakeGpu, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu.free_now = 32 * MIB
    monkeypatch.setattr(mulc, "npp", lambda device: None)
    assert mulc.run(gpu, [(1000, 5)])  # type: ignore[arg-type]
    out = capsys.readouterr().out
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [(row["kernel"], row["n"], row["calls"]) for row in rows] == [
        (kernel, 1000, 5) for kernel in ("scalar", "scalar graph", "float4", "float4 graph")
    ]
    assert "libnpps" in out
    monkeypatch.setattr(FakeGpu, "_mulc4", lambda self, data, n, factor: None)
    assert not mulc.run(gpu, [(1000, 5)])  # type: ignore[arg-type]
    out = capsys.readouterr().out
    assert [json.loads(line)["kernel"] for line in out.splitlines() if line[0] == "{"] == [
        "scalar",
        "scalar graph",
    ]
    assert "\nfloat4: " in out


def test_graphs_hold_as_many_calls_as_were_asked_for(gpu: FakeGpu) -> None:
    calls: list[int] = []
    repeat = mulc.in_graphs(gpu, lambda address, n, factor: calls.append(n), batch=4)  # type: ignore[arg-type]
    repeat(0, 7, 1.0, 11)
    assert calls == [7] * 11


def test_mulc_needs_a_gpu_and_sensible_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert mulc.main(["--row", "7"]) == 100
    assert "'7'" in capsys.readouterr().err


def test_the_kernels_that_are_launched_are_in_the_assembly() -> None:
    folder = Path(driver.__file__).parent
    text = (folder / "kernels.ptx").read_text()
    source = (folder / "kernels.cu").read_text()
    for name in ("fill", "verify", "float_chain", "integer_chain", "mulc", "mulc4"):
        assert f".entry {name}(" in text
        assert f"__global__ void {name}(" in source
    assert ".version 6.0" in text
    assert ".target sm_52" in text


def test_the_watch_over_a_hanging_gpu_ends_with_the_test() -> None:
    before = set(threading.enumerate())
    with selftest._watched(3600.0, 99):
        (watch,) = set(threading.enumerate()) - before
        assert watch.is_alive()
    watch.join()


def test_a_gpu_that_hangs_ends_the_process() -> None:
    code = (
        "import time\nfrom sge_jobs.node.selftest import selftest\n"
        "with selftest._watched(0.2, 99):\n    time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 99
    assert done.stderr.startswith("FAILED: ")
