"""How to use the GPU; nothing in here changes what is trained, only how it is computed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pycuda_nn.errors import ConfigError, did_you_mean

PRECISION_NAMES = ("float32", "tf32", "fp16", "bf16")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, kw_only=True)
class CudaOptions:
    """Options of the CUDA backend; wrong ones raise ConfigError.

    Attributes:
        precision: ``float32`` as numpy; ``tf32``, ``fp16`` and ``bf16`` multiply in fewer bits on
            tensor cores. Weights are kept, and sums are made, in float32 in all of them.
        device: GPU, counted from 0 among those in ``CUDA_VISIBLE_DEVICES``.
        memory_limit: Bytes of GPU memory to use at most; None for what is free.
        deterministic: The same bits on every GPU of one model with the same libraries: algorithms
            are not chosen by timing.
    """

    precision: str = "float32"
    device: int = 0
    memory_limit: int | None = None
    deterministic: bool = False

    def __post_init__(self) -> None:
        if self.precision not in PRECISION_NAMES:
            raise ConfigError(
                f"unknown precision '{self.precision}'",
                did_you_mean(self.precision, PRECISION_NAMES),
            )
        if self.device < 0:
            raise ConfigError(f"device {self.device}: GPUs are counted from 0")
        if self.memory_limit is not None and self.memory_limit < 1:
            raise ConfigError(f"memory limit {self.memory_limit}: must be at least 1 byte")


def cuda_options(
    precision: str | None, device: int | None, memory_limit: str | None, *, deterministic: bool
) -> CudaOptions:
    """Return the options of a command line, on which None stands for what is not given.

    Raises:
        ConfigError: One is wrong.
    """
    return CudaOptions(
        precision=precision or "float32",
        device=device or 0,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        deterministic=deterministic,
    )


def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as ``2GiB``, ``512M`` or ``1.5G``, in powers of 1024.

    Raises:
        ConfigError: It is no size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ConfigError(f"'{text}' is no size of memory", "Give one such as 2GiB or 512M.")
    return int(float(match[1]) * _UNITS[match[2].upper()])
