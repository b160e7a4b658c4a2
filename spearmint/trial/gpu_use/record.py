"""Read and write what the monitor of a trial's GPUs measured."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from spearmint.layout import TrialFolder, read_json, write_json


def write_gpu_use(folder: TrialFolder, use: dict[str, Any]) -> None:
    """Write ``gpu_use.json``; a full disk only loses the record."""
    with contextlib.suppress(OSError):
        write_json(folder.gpu_use, use)


def gpu_use_of(folder: TrialFolder, start: object) -> dict[str, Any] | None:
    """Return how the job of the trial that started at ``start`` used its GPUs; None if unknown.

    Keys:
        gpu_busy: Share of the time since the first use in which a kernel ran, 0 to 1, the mean of
            all GPUs; None if the GPUs do not measure it.
        first_use_s: Seconds from the start of the job to the first kernel; None if none ran.
        seconds: Seconds from the start of the job to the last sample.
        shared: Whether other jobs can use the GPUs, too.
        gpus: ``gpu`` (index or UUID), ``busy``, ``memory_mib`` (the highest) and
            ``memory_total_mib`` of each GPU.
    """
    found = None
    with contextlib.suppress(OSError):
        found = read_json(folder.gpu_use)
    if found is None or start is None or found.pop("start", None) != start:
        return None
    return found if _is_whole(found) else None


def _is_whole(use: dict[str, Any]) -> bool:
    """Return whether a record has all keys, in case another program wrote the file."""
    numbers = [use.get("seconds"), *(use.get(name) or 0 for name in ("gpu_busy", "first_use_s"))]
    gpus = use.get("gpus")
    if not all(map(_is_number, numbers)) or not isinstance(gpus, list) or "shared" not in use:
        return False
    memory = ("memory_mib", "memory_total_mib")
    return all(
        isinstance(gpu, dict)
        and isinstance(gpu.get("gpu"), str)
        and _is_number(gpu.get("busy") or 0)
        and all(_is_number(gpu.get(name)) for name in memory)
        for gpu in gpus
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
