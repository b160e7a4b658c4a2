"""Errors of a GPU that the driver has counted: ECC errors, remapped rows, Xid messages."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from sge_jobs.node.queries import QueryFailed, ask

FATAL_XIDS = {
    48: "double-bit ECC error",
    62: "internal micro-controller halt",
    64: "row remapping failed",
    74: "NVLink error",
    79: "fallen off the bus",
    92: "high rate of single-bit ECC errors",
    94: "contained ECC error",
    95: "uncontained ECC error",
    119: "GSP time-out",
    120: "GSP error",
    140: "unrecovered ECC error",
}
"""Xid numbers that indicate a hardware error, from NVIDIA's "XID Errors" document."""

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
_FIELDS = {
    "ecc_uncorrected": "ecc.errors.uncorrected.volatile.total",
    "pages_pending": "retired_pages.pending",
    "rows_pending": "remapped_rows.pending",
    "rows_failed": "remapped_rows.failure",
}
_DAY_S = 86400.0
_TAIL = 1 << 20


def counters(uuid: str) -> dict[str, int]:
    """Return the available counters of GPU ``uuid``; ``rows_`` and ``pages_`` are 0 or 1."""
    found = _by_nvml(uuid)
    return _by_smi(uuid) if found is None else found


def _by_nvml(uuid: str) -> dict[str, int] | None:
    try:
        import pynvml as nvml
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        found = {
            "ecc_uncorrected": _asked(nvml, "nvmlDeviceGetTotalEccErrors", handle, 1, 0),
            "pages_pending": _asked(nvml, "nvmlDeviceGetRetiredPagesPendingStatus", handle),
        }
        rows = _asked(nvml, "nvmlDeviceGetRemappedRows", handle)
        if rows is not None:
            found["rows_pending"], found["rows_failed"] = int(rows[2]), int(rows[3])
        return {key: int(value) for key, value in found.items() if value is not None}
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def _asked(nvml: Any, name: str, *arguments: Any) -> Any:
    try:
        return getattr(nvml, name)(*arguments)
    except (AttributeError, nvml.NVMLError):
        return None


def _by_smi(uuid: str) -> dict[str, int]:
    found = {}
    for key, field in _FIELDS.items():
        argv = ["nvidia-smi", f"--id={uuid}", f"--query-gpu={field}", "--format=csv,noheader"]
        try:
            answer = ask(argv, os.environ, 30.0).strip().lower()
        except QueryFailed:
            continue
        if answer in ("yes", "no"):
            found[key] = int(answer == "yes")
        elif answer.isdigit():
            found[key] = int(answer)
    return found


def xids(bus_id: str, log: str, now_s: float = 0.0) -> list[int]:
    """Return the Xid numbers of the GPU at PCI address ``bus_id`` in a kernel log, oldest first.

    Args:
        log: Lines of /dev/kmsg, or of a log file.
        now_s: Seconds since boot; lines of /dev/kmsg that are older than a day are ignored.
    """
    found = []
    for line in log.splitlines():
        match = _XID.search(line)
        if match is None or _address(match.group(1)) != _address(bus_id):
            continue
        stamp = line.partition(";")[0].split(",")
        recent = True
        if now_s and len(stamp) >= 3 and stamp[2].isdigit():
            recent = now_s - int(stamp[2]) / 1e6 < _DAY_S
        if recent:
            found.append(int(match.group(2)))
    return found


def _address(text: str) -> tuple[int, ...]:
    """Return bus and device of ``0000:3b:00.0``, ``0000:3b:00`` or ``3b:00``."""
    parts = text.lower().partition(".")[0].split(":")
    try:
        return tuple(int(part, 16) for part in parts[-2:])
    except ValueError:
        return ()


def kernel_log() -> tuple[str, float]:
    """Return the readable part of the kernel's log, and the seconds since boot or 0.

    The seconds are 0 if the lines have no timestamps.

    Raises:
        OSError: The log cannot be read; on most systems only root can read it.
    """
    try:
        return _kmsg(), time.clock_gettime(time.CLOCK_BOOTTIME)
    except OSError:
        with open("/var/log/kern.log", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().decode("utf-8", "replace"), 0.0


def _kmsg() -> str:
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lines = []
    try:
        while True:
            try:
                lines.append(os.read(descriptor, 8192).decode("utf-8", "replace"))
            except BlockingIOError:
                return "".join(lines)
            except BrokenPipeError:  # the kernel overwrote the line
                continue
    finally:
        os.close(descriptor)
