"""NVML of a host whose GPUs are in the JSON file $FAKE_GPUS; it counts the samples of each GPU.

A GPU has ``uuid``, ``busy`` and ``used`` (values of one sample after the other, the last one
repeats), ``total`` and ``samples``. With ``"hangs": true`` no call returns.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace


class NVMLError(Exception):
    """Any error."""


def _host() -> dict:
    return json.loads(Path(os.environ["FAKE_GPUS"]).read_text())


def _keep(host: dict) -> None:
    path = Path(os.environ["FAKE_GPUS"])
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(host))
    part.replace(path)


def nvmlInit() -> None:  # noqa: N802
    host = _host()
    _keep({**host, "monitor": os.getpid(), "started": host.get("started", 0) + 1})
    while host.get("hangs"):
        time.sleep(1)
    if host.get("no_driver"):
        raise NVMLError("Driver Not Loaded")


def nvmlDeviceGetCount() -> int:  # noqa: N802
    return len(_host()["gpus"])


def nvmlDeviceGetHandleByIndex(index: int) -> int:  # noqa: N802
    if index >= nvmlDeviceGetCount():
        raise NVMLError("Invalid Argument")
    return index


def nvmlDeviceGetHandleByUUID(uuid: bytes) -> int:  # noqa: N802
    for index, gpu in enumerate(_host()["gpus"]):
        if gpu["uuid"].encode() == uuid:
            return index
    raise NVMLError("Not Found")


def nvmlDeviceGetUUID(handle: int) -> str:  # noqa: N802
    return str(_host()["gpus"][handle]["uuid"])


def nvmlDeviceGetUtilizationRates(handle: int) -> SimpleNamespace:  # noqa: N802
    host = _host()
    gpu = host["gpus"][handle]
    count = gpu["samples"] = gpu.get("samples", 0) + 1
    _keep(host)
    if "busy" not in gpu:
        raise NVMLError("Not Supported")
    return SimpleNamespace(gpu=gpu["busy"][min(count, len(gpu["busy"])) - 1], memory=0)


def nvmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:  # noqa: N802
    gpu = _host()["gpus"][handle]
    count = max(1, gpu.get("samples", 1))
    used = gpu["used"][min(count, len(gpu["used"])) - 1]
    return SimpleNamespace(used=used << 20, total=gpu["total"] << 20)
