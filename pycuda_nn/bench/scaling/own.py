"""Worker: time trainings of ``pycuda_nn``; ``processes.py`` starts it."""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import pycuda_nn as nn
from pycuda_nn.bench.workloads import CLASSES
from pycuda_nn.errors import ConfigError, PycudaNNError
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend, SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]

LEAST_STEPS = 16
_LEAST_EPOCHS, _MOST_EPOCHS = 3, 50
_RATE = 0.01
_DISTINCT_ROWS = 1 << 14


def main(text: str) -> None:
    """Time the cases of the plan ``text``, and print a line of JSON for each."""
    plan = json.loads(text)
    _end_with_parent()
    _emit(_machine())
    for number in plan["todo"]:
        _emit({"begin": number})
        try:
            _emit({"case": number, **_time_case(plan["cases"][number], plan)})
        except Exception as error:  # noqa: BLE001 - the other cases continue
            _emit({"case": number, "error": _text(error)})
            _emit({"done": number})
            if not isinstance(error, ConfigError):
                os._exit(1)  # the context can be unusable; a new process continues
            continue
        _emit({"done": number})


def _text(error: Exception) -> str:
    what = error.what if isinstance(error, PycudaNNError) else f"{type(error).__name__}: {error}"
    return " ".join(what.split())


def _time_case(case: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, float]:
    options: dict[str, Any] = {"precision": plan["precision"]}
    if case["gpus"] > 1:
        options.update(gpus=case["gpus"], exchange=case["exchange"])
    backend = nn.CudaBackend(nn.CudaOptions(**options), timed=False)
    return time_steps(
        backend, tuple(case["sizes"]), case["batch"], plan["row_bytes"], plan["seconds"]
    )


def time_steps(
    backend: Backend, sizes: tuple[int, ...], batch: int, row_bytes: int, seconds: float
) -> dict[str, float]:
    """Return the microseconds of a step: whole epochs on resident rows, two of them not counted.

    Args:
        backend: Where to train.
        sizes: The network.
        batch: Minibatch of the training.
        row_bytes: The least size of the rows; they fill at least 16 minibatches.
        seconds: Time at least three epochs, and more up to this time.

    Raises:
        FloatingPointError: The training diverged; its time would mislead.
    """
    steps = max(LEAST_STEPS, row_bytes // (4 * sizes[0] * batch))
    rows = steps * batch
    x, y = _rows(sizes[0], rows)
    network = Network.from_sizes(sizes, activation="relu", loss="softmax")
    hyper = SgdHyper(momentum=0.9, nesterov=False)
    recipe = TrainingRecipe(optimizer=hyper, batch_size=batch, l2=0.0, seed=0)
    parts = {"train": Split(x=x, y=y)}
    session = backend.open(network, recipe, parts, network.initial_params(0))
    rates = np.full(steps, _RATE)
    losses = np.empty(0, dtype=np.float32)
    epoch = 0

    def run() -> None:
        nonlocal losses, epoch
        losses = session.run_epoch(EpochOrder(n=rows, seed=0, epoch=epoch), rates)
        epoch += 1

    try:
        timing = median_step(run, steps, seconds)
    finally:
        session.close()
    if not np.isfinite(losses).all():
        raise FloatingPointError("the loss is not finite")
    return timing


def _rows(features: int, rows: int) -> tuple[Array, Array]:
    """Return rows whose class can be learned; they repeat, because drawing them takes seconds."""
    x, y = _distinct_rows(features)
    repeats = -(-rows // len(x))
    return np.tile(x, (repeats, 1))[:rows], np.tile(y, repeats)[:rows]


@functools.cache
def _distinct_rows(features: int) -> tuple[Array, Array]:
    draw = np.random.default_rng(0)
    projection = draw.standard_normal((features, CLASSES), dtype=np.float32)
    x = draw.standard_normal((_DISTINCT_ROWS, features), dtype=np.float32)
    return x, (x @ projection).argmax(axis=1).astype(np.int32)


def median_step(
    epoch: Callable[[], None],
    steps: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Run ``epoch`` twice, then time it; return median, fastest and slowest microseconds a step."""
    epoch()
    epoch()
    spans: list[float] = []
    while len(spans) < _LEAST_EPOCHS or (sum(spans) < seconds and len(spans) < _MOST_EPOCHS):
        began = clock()
        epoch()
        spans.append(clock() - began)
    us = [span / steps * 1e6 for span in spans]
    return {"us": statistics.median(us), "fastest": min(us), "slowest": max(us)}


def _machine() -> dict[str, Any]:
    """Return the GPU, the versions, and whether all GPUs reach the memory of each other."""
    import pycuda.driver as cuda

    from pycuda_nn.bench.machine import describe, package_version
    from pycuda_nn.cuda.runtime.device import Device

    machine = describe(Device(0))
    devices = [cuda.Device(number) for number in range(cuda.Device.count())]
    reach = all(a.can_access_peer(b) for a in devices for b in devices if a != b)
    return {
        "machine": vars(machine),
        "peer_access": reach,
        "nccl": package_version("nvidia-nccl-cu13", "nvidia-nccl-cu12"),
    }


def _end_with_parent() -> None:
    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _emit(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
