"""What can go wrong, and with which exit code.

::

    PycudaNNError              1   base: what happened, and what to do
    |-- ConfigError            2   a setting is unknown or out of range (lists all of them)
    |-- DataError              2   the data cannot be trained on
    |-- BackendUnavailable     2   the backend is not there
    |-- MissingExtra           1   an optional package is not installed
    |-- KernelBuildError       1   a CUDA kernel cannot be compiled here
    |-- OutOfDeviceMemory      1   the GPU has no room for the training
    |-- DeviceError            1   the CUDA driver refused an operation
    |-- ShapeError             1   arrays given to a kernel do not fit it; nothing was launched
    |-- TrainingDiverged       1   the loss is no longer finite
    `-- CheckpointError        1   the checkpoint cannot be read, written or continued

:func:`pycuda_nn.cli.main` is the one place that turns them into exit codes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar


class PycudaNNError(Exception):
    """Base of all errors of this package: ``what`` happened and the ``fix``."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # As it is, whatever its constructor takes: it may come from a worker process.
        return type(self).__new__, (type(self), *self.args), vars(self)


class ConfigError(PycudaNNError):
    """A setting is unknown or out of range; ``problems`` has one line for each."""

    exit_code = 2

    def __init__(self, what: str, fix: str = "", problems: Sequence[str] = ()) -> None:
        self.problems = tuple(problems)
        lines = [what, *(f"  - {problem}" for problem in self.problems)]
        super().__init__("\n".join(lines), fix)


class DataError(PycudaNNError):
    """The data cannot be trained on."""

    exit_code = 2


class BackendUnavailable(PycudaNNError):
    """The backend asked for is not part of this version or not usable on this machine."""

    exit_code = 2


class MissingExtra(PycudaNNError):
    """An optional package is not installed; ``extra`` names the set that has it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed",
            f"Install it: pip install 'starmint[{extra}]'",
        )
        self.extra = extra


class KernelBuildError(PycudaNNError):
    """A CUDA kernel cannot be compiled: there is no compiler, or it does not take the source."""


class OutOfDeviceMemory(PycudaNNError):
    """The GPU has no room; ``needed_bytes`` for ``purpose``, ``free_bytes`` are there."""

    def __init__(self, purpose: str, needed_bytes: int, free_bytes: int, *, limited: bool) -> None:
        where = "--memory-limit leaves" if limited else "the GPU has free"
        super().__init__(
            f"out of GPU memory: {purpose} needs {_mib(needed_bytes)}, {where} {_mib(free_bytes)}",
            "Lower batch_size or hidden, or choose --precision bf16; nvidia-smi shows who uses it.",
        )
        self.purpose = purpose
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


class OutOfHostMemory(PycudaNNError):
    """The host has no pinned memory of ``needed_bytes`` left for ``purpose``."""

    def __init__(self, purpose: str, needed_bytes: int) -> None:
        super().__init__(
            f"out of host memory: {purpose} need {_mib(needed_bytes)} that the GPU can read",
            "Train on fewer rows, or raise --memory-limit so that they fit on the GPU.",
        )
        self.purpose = purpose
        self.needed_bytes = needed_bytes


class DeviceError(PycudaNNError):
    """The CUDA driver refused an operation; in its words."""


class ShapeError(PycudaNNError):
    """Arrays given to a kernel do not fit it or each other; nothing was launched."""


class TrainingDiverged(PycudaNNError):
    """The loss stopped being a finite number; ``epoch`` and ``step`` count from 1."""

    def __init__(self, *, epoch: int, step: int, lr: float, where: str = "training loss") -> None:
        super().__init__(
            f"training diverged: the {where} is not finite in epoch {epoch}, step {step} "
            f"(learning rate {lr:.3g})",
            f"Lower lr (try {lr / 10:.1g}), add warmup_epochs, or set scale = 'standard'.",
        )
        self.epoch = epoch
        self.step = step
        self.lr = lr


class CheckpointError(PycudaNNError):
    """The checkpoint cannot be read, written, or continued with these settings."""


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MiB"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"Did you mean 'x'?"`` for the nearest of ``known``, else the list of them."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.55)
    return f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(names)}."
