"""Test a GPU for errors: memory, arithmetic, bandwidth, and the driver's error counters.

Requires only the driver: ``python -m sge_jobs.node.selftest --help``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from sge_jobs.exit_codes import JOB_ERROR, RESCHEDULE
from sge_jobs.node.selftest.checks import (
    arithmetic,
    bandwidth,
    expected_bandwidth,
    health_counters,
    memory,
)
from sge_jobs.node.selftest.driver import CudaError, Device, Driver, NoDriver
from sge_jobs.node.selftest.report import Check, Report, print_report

_MIN_HOST_GB_S = 1.0
_HANG_S = 300.0


def examine(
    driver: Driver,
    index: int,
    seconds: float,
    floors: tuple[float | None, float],
    say: Callable[[str], None],
    open_device: Callable[[Driver, int], Device] = Device,
) -> Report:
    """Run all tests on GPU ``index``; an error of the driver is a failed test, not an exception."""
    started = time.monotonic()
    report = Report(socket.gethostname(), index, "", "", driver.version(), [])
    try:
        device = open_device(driver, index)
    except CudaError as error:
        report.checks.append(Check("context", False, str(error)))
        return report
    report.uuid, report.name = device.uuid, device.name
    floor = floors[0] if floors[0] is not None else expected_bandwidth(device)
    tests: list[tuple[str, Callable[[], Check]]] = [
        ("health", lambda: health_counters(device.uuid, device.bus_id)),
        ("bandwidth", lambda: bandwidth(device, (floor, floors[1]), say)),
        ("arithmetic", lambda: arithmetic(device, time.monotonic() + 0.3 * seconds, say)),
        ("memory", lambda: memory(device, started + seconds, say)),
        ("health afterwards", lambda: health_counters(device.uuid, device.bus_id)),
    ]
    for name, test in tests:
        try:
            check = test()
            check.name = name
        except CudaError as error:
            check = Check(name, False, str(error))
        report.checks.append(check)
        say(f"{name}: {'passed' if check.passed else 'FAILED'}: {check.detail}")
    report.seconds = time.monotonic() - started
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="selftest",
        description="Test the memory, arithmetic and bandwidth of each visible GPU.",
        epilog="Example: qsub -b y -l gpu=1 python3 -m sge_jobs.node.selftest --seconds 60",
    )
    add = parser.add_argument
    add("--seconds", type=float, default=20.0, help="Test each GPU for this long. Default: 20 s.")
    add("--json", action="store_true", help="Print one JSON object per GPU.")
    add("--quiet", action="store_true", help="Print no progress on standard error.")
    add(
        "--device", type=int, action="append", metavar="INDEX",
        help="Test only this GPU. Repeatable. Default: all GPUs.",
    )  # fmt: skip
    add(
        "--min-device-gb-s", type=float, metavar="RATE",
        help="Fail if copies on the GPU are slower than this many GB/s. Default: 40 %% of the rate"
        " that the memory clock allows.",
    )  # fmt: skip
    add(
        "--min-host-gb-s", type=float, default=_MIN_HOST_GB_S, metavar="RATE",
        help="Fail if copies from or to the host are slower than this many GB/s. Default: 1.",
    )  # fmt: skip
    add(
        "--bad-exit", type=int, default=RESCHEDULE, metavar="CODE",
        help="Exit with this code if a GPU fails. Default: 99, with which Grid Engine reruns the"
        " job, perhaps on another host.",
    )  # fmt: skip
    return parser


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    try:
        given = parser.parse_args(argv)
    except SystemExit as error:
        raise SystemExit(JOB_ERROR if error.code else 0) from None
    if not given.seconds > 0:
        parser.print_usage(sys.stderr)
        sys.stderr.write(f"Error: --seconds={given.seconds:g}: must be more than 0\n")
        raise SystemExit(JOB_ERROR)
    return given


@contextlib.contextmanager
def _watched(seconds: float, code: int) -> Iterator[None]:
    """Exit the process after ``seconds``, because a call to a GPU that hangs never returns."""

    def end() -> None:
        sys.stderr.write(f"FAILED: timeout: the GPU did not respond for {seconds:.0f} s\n")
        sys.stderr.flush()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def main(argv: Sequence[str] | None = None) -> int:
    """Test the GPUs; return 0 if all pass, otherwise --bad-exit, or 100 if there is no GPU."""
    given = _arguments(argv)

    def say(text: str) -> None:
        if not given.quiet:
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    try:
        driver = Driver()
        count = driver.count()
        if not count:
            raise NoDriver("no GPU is visible to this process")
    except (NoDriver, CudaError) as error:
        sys.stderr.write(f"Error: {error}\nRequest a GPU: qsub -l gpu=1 ...\n")
        return JOB_ERROR
    indices = given.device if given.device is not None else range(count)
    if any(index not in range(count) for index in indices):
        sys.stderr.write(f"Error: --device must be between 0 and {count - 1}\n")
        return JOB_ERROR
    with _watched(len(list(indices)) * (given.seconds + _HANG_S), given.bad_exit):
        return 0 if _all_sound(driver, indices, given, say) else int(given.bad_exit)


def _all_sound(
    driver: Driver, indices: Sequence[int], given: argparse.Namespace, say: Callable[[str], None]
) -> bool:
    """Test the GPUs one after another and print the results."""
    sound = True
    for index in indices:
        floors = (given.min_device_gb_s, given.min_host_gb_s)
        report = examine(driver, index, given.seconds, floors, say)
        sound = sound and report.passed
        if given.json:
            sys.stdout.write(json.dumps({"passed": report.passed, **asdict(report)}) + "\n")
            sys.stdout.flush()
        else:
            print_report(report)
    return sound
