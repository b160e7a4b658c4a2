"""The options of ``pycuda-nn train`` for GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import click
import cloup

from pycuda_nn.backends import BACKENDS, load, pick
from pycuda_nn.cli.options import HelpOption
from pycuda_nn.cuda.options import (
    EXCHANGES,
    GPU_WORDS,
    PRECISION_NAMES,
    CudaOptions,
    cuda_options,
)
from pycuda_nn.errors import ConfigError
from pycuda_nn.protocols import Backend


def _gpus(context: click.Context, option: click.Parameter, text: str | None) -> int | str | None:
    if text is None or text in GPU_WORDS:
        return text
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise click.BadParameter(f"invalid number '{text}': expected a number from 1, all or auto")
    return int(text)


GPU_OPTIONS = cloup.option_group(
    "GPU",
    cloup.option(
        "--backend", cls=HelpOption, default="auto", metavar="NAME",
        help=f"Train with {', '.join(BACKENDS)} or auto, which uses the GPU if available. "
        "Default: auto.",
    ),
    cloup.option(
        "--precision", cls=HelpOption, metavar="NAME",
        help=f"Compute in one of {', '.join(PRECISION_NAMES)}: float32 gives the results of "
        "numpy, bf16 is the fastest. Default: float32.",
    ),
    cloup.option(
        "--device", cls=HelpOption, type=click.IntRange(0), metavar="N",
        help="Use this GPU, counted from 0 in CUDA_VISIBLE_DEVICES. Default: 0.",
    ),
    cloup.option(
        "--gpus", cls=HelpOption, metavar="N", callback=_gpus,
        help="Train on N GPUs at once, on all, or on as many as make a step fastest (auto). The "
        "minibatch stays the same: each GPU computes a part of it. Default: 1.",
    ),
    cloup.option(
        "--exchange", cls=HelpOption, type=click.Choice(EXCHANGES), default="auto",
        help="Exchange gradients by built-in kernels (peer) or NCCL; auto uses NCCL only where the "
        "GPUs cannot access each other's memory. Default: auto.",
    ),
    cloup.option(
        "--exact-gradients", is_flag=True,
        help="Exchange gradients of bf16 in float32; others always are.",
    ),
    cloup.option(
        "--hosts", cls=HelpOption, type=click.IntRange(1), default=1, metavar="N",
        help="Train on N hosts at once, one process on each, by NCCL. Default: 1.",
    ),
    cloup.option(
        "--host", cls=HelpOption, type=click.IntRange(0), default=0, metavar="K",
        help="This process is on host K, from 0. Host 0 writes the checkpoint. Default: 0.",
    ),
    cloup.option(
        "--meet", cls=HelpOption, default="", metavar="DIR",
        help="Meet the processes of the other hosts in this empty, private folder, which all hosts "
        "share. Default: none, for one host.",
    ),
    cloup.option(
        "--memory-limit", cls=HelpOption, metavar="SIZE",
        help="Use at most this much GPU memory, e.g. 2GiB; rows that do not fit stay in host "
        "memory. Default: all free memory.",
    ),
    cloup.option(
        "--deterministic", is_flag=True,
        help="Choose no algorithm by timing, for the same bits on every GPU of the same model; "
        "--gpus auto then uses all GPUs.",
    ),
)  # fmt: skip


def cuda_of(values: Mapping[str, Any]) -> CudaOptions:
    """Return the options of :data:`GPU_OPTIONS` in ``values``.

    Raises:
        ConfigError: An option is invalid.
    """
    return cuda_options(**{field.name: values[field.name] for field in fields(CudaOptions)})


def chosen_backend(name: str, cuda: CudaOptions) -> Backend:
    """Return the backend ``name``.

    Raises:
        ConfigError: ``cuda`` has options, but the backend is not cuda.
    """
    chosen = pick(name, {"cuda": cuda})
    if cuda != CudaOptions() and chosen.name != "cuda":
        reason = load("cuda").missing() or f"--backend is {name}"
        raise ConfigError(
            "--precision, --device, --memory-limit, --deterministic, --gpus, --exchange, "
            "--exact-gradients and --hosts need the backend cuda: "
            f"{reason}",
            "Remove these options.",
        )
    return chosen
