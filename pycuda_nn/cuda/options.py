"""Options of the GPU: they change how the training is computed, not what is trained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pycuda_nn.errors import ConfigError, did_you_mean

PRECISION_NAMES = ("float32", "tf32", "fp16", "bf16")
EXCHANGES = ("auto", "peer", "nccl")
GPU_WORDS = ("all", "auto")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, kw_only=True)
class CudaOptions:
    """Options of the CUDA backend; an invalid value raises ConfigError.

    Example:
        >>> import pycuda_nn as nn
        >>> options = nn.CudaOptions(precision="bf16", memory_limit=2 * 2**30)
        >>> backend = nn.CudaBackend(options)  # for nn.train(..., backend=backend)

    Attributes:
        precision: ``float32`` computes like numpy. ``tf32``, ``fp16`` and ``bf16`` multiply in
            fewer bits on tensor cores; all of them store weights and sum in float32.
        device: Number of the GPU, counted from 0 in ``CUDA_VISIBLE_DEVICES``.
        memory_limit: Use at most this many bytes of GPU memory; None for all that is free.
        deterministic: Do not choose algorithms by timing. Every GPU of the same model then gives
            the same bits with the same libraries.
        gpus: Train on this many GPUs, from ``device`` on; ``all``, or ``auto`` for the number with
            the fastest steps (with ``deterministic`` all). The minibatch is that of the whole
            training; with another number of GPUs only the rounding of sums differs.
        exchange: How GPUs exchange gradients: ``peer`` by built-in kernels, ``nccl`` by NCCL, or
            ``auto``: ``peer`` where the GPUs can access each other's memory.
        hosts, host: Number of hosts that train together, one process each, and the number of this
            host from 0. They exchange gradients by NCCL.
        meet: An empty, private folder that all hosts share, in which their processes meet.
        exact_gradients: Exchange float32 gradients in all precisions; bf16 otherwise exchanges
            bfloat16.
    """

    precision: str = "float32"
    device: int = 0
    memory_limit: int | None = None
    deterministic: bool = False
    gpus: int | str = 1
    exchange: str = "auto"
    exact_gradients: bool = False
    hosts: int = 1
    host: int = 0
    meet: str = ""

    def __post_init__(self) -> None:
        if self.precision not in PRECISION_NAMES:
            raise ConfigError(
                f"unknown precision '{self.precision}'",
                did_you_mean(self.precision, PRECISION_NAMES),
            )
        if self.device < 0:
            raise ConfigError(f"invalid device {self.device}: GPUs are counted from 0")
        if self.memory_limit is not None and self.memory_limit < 1:
            raise ConfigError(f"invalid memory limit {self.memory_limit}: must be at least 1 byte")
        if self.exchange not in EXCHANGES:
            raise ConfigError(
                f"unknown exchange '{self.exchange}'", did_you_mean(self.exchange, EXCHANGES)
            )
        self._check_hosts()
        good = self.gpus in GPU_WORDS if isinstance(self.gpus, str) else self.gpus >= 1
        if not good:
            raise ConfigError(
                f"invalid number of GPUs '{self.gpus}': expected a number from 1, all or auto"
            )

    def _check_hosts(self) -> None:
        if not 0 <= self.host < self.hosts:
            raise ConfigError(f"invalid host {self.host} of {self.hosts}: hosts are counted from 0")
        if self.hosts > 1 and not self.meet:
            raise ConfigError(
                f"{self.hosts} hosts need a folder in which they meet",
                "Give --meet DIR, an empty, private folder that all hosts share.",
            )
        if self.hosts > 1 and (self.exchange == "peer" or self.gpus == "auto"):
            raise ConfigError(
                "several hosts exchange gradients by NCCL, on a fixed number of GPUs",
                "Remove --exchange peer, and use --gpus N or --gpus all.",
            )


def cuda_options(**given: Any) -> CudaOptions:
    """Return the options of a command line; None means that an option was not given.

    Args:
        given: Values of the attributes of :class:`CudaOptions`; ``memory_limit`` as text.

    Raises:
        ConfigError: An option is invalid.
    """
    values = {name: value for name, value in given.items() if value is not None}
    if "memory_limit" in values:
        values["memory_limit"] = parse_bytes(values["memory_limit"])
    return CudaOptions(**values)


def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as ``2GiB``, ``512M`` or ``1.5G``, in powers of 1024.

    Raises:
        ConfigError: ``text`` is not a size.
    """
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ConfigError(f"invalid memory size '{text}': expected a size such as 2GiB or 512M")
    return int(float(match[1]) * _UNITS[match[2].upper()])
