"""Time the trainer as users run it: real minibatches, all losses, evaluation after each epoch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import pycuda_nn as nn
from pycuda_nn.bench.machine import Machine
from pycuda_nn.bench.tables import TrainReport, TrainRow
from pycuda_nn.bench.workloads import VALID_ROWS, Workload, make_rows
from pycuda_nn.errors import PycudaNNError


def measure(
    machine: Machine,
    workloads: Sequence[Workload],
    options: Sequence[nn.CudaOptions],
    epochs: int,
    say: Callable[[str], None],
) -> TrainReport:
    """Train every workload with every option; report and skip workloads that do not fit."""
    rows = []
    for workload in workloads:
        train, valid = (
            nn.Dataset.from_arrays(*make_rows(workload, n, seed), task=_task(workload), name=name)
            for seed, (n, name) in enumerate([(workload.rows, "train"), (VALID_ROWS, "valid")])
        )
        for option in options:
            say(f"train: {workload.name}, {option.precision}")
            try:
                rows.append(_train(workload, option, epochs, train, valid))
            except PycudaNNError as error:
                say(f"train: {workload.name}, {option.precision}: {error}")
    return TrainReport(machine=machine, rows=tuple(rows))


def config_for(workload: Workload, epochs: int) -> nn.TrainConfig:
    """Return the settings of the workload, as the compared libraries train it."""
    return nn.TrainConfig(
        hidden=workload.sizes[1:-1],
        loss=workload.loss,
        dropout=workload.dropout,
        optimizer=workload.optimizer,
        lr=0.02 if workload.optimizer == "sgd" else 0.001,
        momentum=0.9,
        batch_size=workload.batch,
        epochs=epochs,
        scale="none",
    )


def _task(workload: Workload) -> str:
    return "regress" if workload.loss == "squared" else "classify"


def _train(
    workload: Workload,
    options: nn.CudaOptions,
    epochs: int,
    train: nn.Dataset,
    valid: nn.Dataset,
) -> TrainRow:
    began = time.perf_counter()
    config = config_for(workload, epochs + 1)
    history = nn.train(config, train, valid, backend=nn.CudaBackend(options)).history
    whole = time.perf_counter() - began
    epoch_s = [report.seconds for report in history[1:]]
    steps = [seconds / workload.steps * 1e6 for seconds in epoch_s]
    median = statistics.median(epoch_s)
    last = history[-1]
    return TrainRow(
        workload=workload.name,
        rows=workload.rows,
        precision=options.precision,
        us_a_step=median / workload.steps * 1e6,
        fastest=min(steps),
        slowest=max(steps),
        epoch_s=median,
        tflops=workload.flops * workload.rows / workload.batch / median / 1e12,
        setup_s=whole - sum(report.seconds for report in history),
        first_loss=history[0].train_loss,
        last_loss=last.train_loss,
        valid_error=last.valid_error or 0.0,
    )
