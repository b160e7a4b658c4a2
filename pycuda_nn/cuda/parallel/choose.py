"""How many GPUs a training uses, and how they exchange gradients."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel.hosts import meet
from pycuda_nn.cuda.parallel.nccl import check_installed, new_unique_id
from pycuda_nn.cuda.parallel.peers import all_can_access
from pycuda_nn.cuda.parallel.room import MOST_LAYERS
from pycuda_nn.cuda.parallel.session import DataParallelSession
from pycuda_nn.cuda.parallel.structs import MOST_RANKS
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import all_kernels
from pycuda_nn.cuda.runtime.device import gpu_name
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.weights import optimizer_number
from pycuda_nn.cuda.training.session import CudaSession
from pycuda_nn.errors import BackendUnavailable, ConfigError, OutOfDeviceMemory
from pycuda_nn.protocols import Session, Split

Array = npt.NDArray[Any]
_LOG = logging.getLogger("pycuda_nn")

_TIMED_STEPS = 16  # full minibatches of a training that is only timed


def open_session(
    plan: TrainingPlan,
    options: CudaOptions,
    parts: Mapping[str, Split],
    params: Array,
    *,
    timed: bool = True,
) -> Session:
    """Return a session on as many GPUs as ``options`` ask for.

    Without ``timed`` it does not compare several GPUs with one, except for ``auto``. With
    ``deterministic``, ``auto`` uses all GPUs: another number has other bits, and times differ.

    Raises:
        BackendUnavailable: There are fewer GPUs.
        ConfigError: A minibatch has fewer rows than there are GPUs.
    """
    if options.hosts > 1:
        return _on_hosts(plan, options, parts, params)
    if options.gpus == 1:
        return CudaSession(plan, options, parts, params)
    batch = min(plan.recipe.batch_size, len(parts["train"].x))
    most = _most(options, batch)
    if most == 1:
        return CudaSession(plan, _one(options), parts, params)
    if options.gpus == "auto" and options.deterministic:
        _LOG.info("--gpus auto with --deterministic: all %d GPUs, whatever their times", most)
        options = dataclasses.replace(options, gpus="all")
    if not timed and options.gpus != "auto":
        return _on_gpus(plan, options, parts, params, most)
    alone = _seconds_alone(plan, options, parts, params)
    if options.gpus != "auto":
        return _opened(plan, options, parts, params, most, alone)
    return _fastest(plan, options, parts, params, most, alone)


def _on_hosts(
    plan: TrainingPlan, options: CudaOptions, parts: Mapping[str, Split], params: Array
) -> DataParallelSession:
    """Return the session of this host, after all hosts have met."""
    batch = min(plan.recipe.batch_size, len(parts["train"].x))
    ordinals = range(options.device, options.device + _most(options, batch))
    check_installed()
    world = meet(options, len(ordinals), new_unique_id)
    if world.size > batch:
        raise ConfigError(
            f"a minibatch of {batch} rows is too small for {world.size} GPUs",
            "Raise batch_size, or use fewer GPUs.",
        )
    return DataParallelSession(
        plan, options, parts, params, ordinals=ordinals, exchange="nccl", world=world
    )


def gpus_there() -> int:
    """Return the number of GPUs that this process can use."""
    cuda.init()
    return int(cuda.Device.count())


def _most(options: CudaOptions, batch: int) -> int:
    there = min(gpus_there() - options.device, MOST_RANKS)
    if isinstance(options.gpus, str):
        return max(1, min(there, batch))
    if options.gpus > there:
        raise BackendUnavailable(
            f"--gpus {options.gpus}: this process sees {gpus_there()} GPUs"
            + (f", of which --device {options.device} is the first" if options.device else ""),
            "Check CUDA_VISIBLE_DEVICES, or use --gpus all.",
        )
    if options.gpus > batch:
        raise ConfigError(
            f"--gpus {options.gpus}: a minibatch of {batch} rows is too small",
            "Raise batch_size, or use fewer GPUs.",
        )
    return options.gpus


def _one(options: CudaOptions) -> CudaOptions:
    return dataclasses.replace(options, gpus=1)


def _seconds_alone(
    plan: TrainingPlan, options: CudaOptions, parts: Mapping[str, Split], params: Array
) -> float:
    """Return the seconds of a step on one GPU, on a few minibatches of the rows.

    They are infinite if one GPU has not enough memory. Otherwise the cache on disk keeps them,
    since finding the algorithms of a step takes seconds.
    """
    train, batch = parts["train"], min(plan.recipe.batch_size, len(parts["train"].x))
    optimizer, facts = optimizer_number(plan.recipe), gpu_name(options.device)
    what = f"{plan.stack} {plan.stack.sizes} {plan.stack.activation} {plan.stack.loss.name}"
    what += f" {plan.stack.dropout} {batch} {optimizer} {plan.precision.name}"
    what += " deterministic" if options.deterministic else ""
    name = cache.key("seconds of a step on one GPU", facts, what, all_kernels()) + ".seconds"
    known = cache.read(name)
    if known is None:
        rows = range(min(len(train.x), _TIMED_STEPS * batch))
        try:
            found = _timed_alone(plan, options, train, rows, params)
        except OutOfDeviceMemory:
            return math.inf
        known = cache.keep(name, repr(found).encode())
    return float(known)


def _timed_alone(
    plan: TrainingPlan, options: CudaOptions, train: Split, rows: range, params: Array
) -> float:
    some = {"train": Split(x=train.x[: rows.stop], y=train.y[: rows.stop])}
    level, _LOG.disabled = _LOG.disabled, True
    try:
        session = CudaSession(plan, _one(options), some, params)
    finally:
        _LOG.disabled = level
    try:
        return session.step_seconds()
    finally:
        session.close()


def _on_gpus(
    plan: TrainingPlan,
    options: CudaOptions,
    parts: Mapping[str, Split],
    params: Array,
    size: int,
) -> DataParallelSession:
    ordinals = range(options.device, options.device + size)
    exchange, layers = options.exchange, len(plan.layout.layers)
    if exchange == "auto":
        near = layers <= MOST_LAYERS and all_can_access(ordinals)
        exchange = "peer" if near else "nccl"
    if exchange == "peer" and layers > MOST_LAYERS:
        raise ConfigError(
            f"--exchange peer: {layers} layers, but the built-in kernels exchange at most "
            f"{MOST_LAYERS}",
            "Use --exchange nccl.",
        )
    return DataParallelSession(plan, options, parts, params, ordinals=ordinals, exchange=exchange)


def _opened(
    plan: TrainingPlan,
    options: CudaOptions,
    parts: Mapping[str, Split],
    params: Array,
    size: int,
    alone: float,
) -> DataParallelSession:
    """Return a session on ``size`` GPUs, after its times were logged next to those of one GPU."""
    session = _on_gpus(plan, options, parts, params, size)
    try:
        times = session.step_times()
    except BaseException:
        session.close()
        raise
    session.times = times
    session.alone = alone
    gain = "one GPU has not enough memory"
    if math.isfinite(alone):
        gain = f"{alone / times.whole:.2f} times one GPU ({1e6 * alone:.1f} us), "
        gain += f"efficiency {100 * alone / (size * times.whole):.0f} %"
    _LOG.info(
        "%d GPUs: %.1f us a step, %s; exchange %.1f us, of which %.1f us are not hidden",
        size, 1e6 * times.whole, gain, 1e6 * times.exchange, 1e6 * times.waiting,
    )  # fmt: skip
    if times.whole > alone and options.gpus != "auto":
        fewer = "--gpus 1" if options.deterministic else "--gpus 1 or --gpus auto"
        _LOG.warning(
            "%d GPUs are slower than one for this training; use %s, or a larger batch_size",
            size, fewer,
        )  # fmt: skip
    return session


def _fastest(
    plan: TrainingPlan,
    options: CudaOptions,
    parts: Mapping[str, Split],
    params: Array,
    most: int,
    alone: float,
) -> Session:
    """Return a session on the number of GPUs with the fastest steps: 1, 2, 4, ... or all."""
    sizes = sorted({most, *(1 << k for k in range(1, most.bit_length()) if 1 << k <= most)})
    best, fastest = alone, 1
    for size in sizes:
        session = _opened(plan, options, parts, params, size, alone)
        if session.times is None or session.times.whole >= best:
            session.close()
            break
        best, fastest = session.times.whole, size
        if size == most:
            return session
        session.close()  # there is perhaps not enough memory for two of them
    _LOG.info("--gpus auto: %d GPU%s", fastest, "" if fastest == 1 else "s")
    if fastest == 1:
        return CudaSession(plan, _one(options), parts, params)
    return _opened(plan, options, parts, params, fastest, alone)
