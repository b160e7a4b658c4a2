"""All errors of this package, and their exit codes.

::

    PycudaNNError              1   base class: what happened, and the fix
    |-- ConfigError            2   settings are unknown or out of range (lists all of them)
    |-- DataError              2   the data cannot be trained on
    |   |-- UnreadableFile     2   a data file is missing, damaged or of an unsupported type
    |   `-- EmptyData          2   there are no rows or no columns
    |-- BackendUnavailable     2   the backend is unknown or does not work on this machine
    |-- MissingExtra           1   an optional package is not installed
    |-- KernelBuildError       1   a CUDA kernel cannot be compiled
    |-- OutOfDeviceMemory      1   the GPU does not have enough memory
    |-- OutOfHostMemory        1   the host does not have enough pinned memory
    |-- DeviceError            1   the CUDA driver rejected an operation
    |-- ShapeError             1   arrays do not fit a kernel; nothing was launched
    |-- TrainingDiverged       1   the loss is not finite
    `-- CheckpointError        1   the checkpoint cannot be read, written or continued
        |-- MissingCheckpoint  2   there is no such checkpoint
        `-- NotACheckpoint     2   the path is that of something else

Only :func:`pycuda_nn.cli.main` turns them into exit codes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar

from starmint import extra_command


class PycudaNNError(Exception):
    """Base class of all errors of this package.

    Example:
        >>> import pycuda_nn as nn
        >>> try:
        ...     nn.load_data("digit")
        ... except nn.PycudaNNError as error:
        ...     error.exit_code
        2

    Attributes:
        what: What happened.
        fix: What to do; can be empty.
        exit_code: Exit code of the command.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}" if self.fix else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # Errors of worker processes are pickled; subclasses have constructors of their own.
        return type(self).__new__, (type(self), *self.args), vars(self)


class ConfigError(PycudaNNError):
    """Settings are unknown or out of range; ``problems`` has a line for each of them."""

    exit_code = 2

    def __init__(self, what: str, fix: str = "", problems: Sequence[str] = ()) -> None:
        self.problems = tuple(problems)
        lines = [what, *(f"  - {problem}" for problem in self.problems)]
        super().__init__("\n".join(lines), fix)


class DataError(PycudaNNError):
    """The data cannot be trained on."""

    exit_code = 2


class UnreadableFile(DataError):
    """A data file is missing, damaged or of an unsupported type."""


class EmptyData(DataError):
    """There are no rows or no columns."""


class BackendUnavailable(PycudaNNError):
    """The backend is unknown, or does not work on this machine."""

    exit_code = 2


class MissingExtra(PycudaNNError):
    """An optional package is not installed; ``extra`` is the extra of starmint that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed",
            f"Install it: {extra_command(extra)}",
        )
        self.extra = extra


class KernelBuildError(PycudaNNError):
    """A CUDA kernel cannot be compiled: no compiler, or the compiler rejects the source."""


class OutOfDeviceMemory(PycudaNNError):
    """The GPU has ``free_bytes`` of memory, but ``purpose`` needs ``needed_bytes``."""

    def __init__(self, purpose: str, needed_bytes: int, free_bytes: int, *, limited: bool) -> None:
        where = "within --memory-limit" if limited else "on the GPU"
        super().__init__(
            f"out of GPU memory: {_mib(needed_bytes)} needed for {purpose}, "
            f"{_mib(free_bytes)} free {where}",
            "Lower batch_size or hidden, or use --precision bf16; nvidia-smi shows which processes "
            "use the memory.",
        )
        self.purpose = purpose
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


class OutOfHostMemory(PycudaNNError):
    """The host cannot pin ``needed_bytes`` of memory for ``purpose``."""

    def __init__(self, purpose: str, needed_bytes: int) -> None:
        super().__init__(
            f"out of host memory: cannot pin {_mib(needed_bytes)} for {purpose}",
            "Train on fewer rows, or raise --memory-limit so that the rows fit on the GPU.",
        )
        self.purpose = purpose
        self.needed_bytes = needed_bytes


class DeviceError(PycudaNNError):
    """The CUDA driver rejected an operation; the message is the driver's."""


class ShapeError(PycudaNNError):
    """Arrays do not fit a kernel or each other; nothing was launched."""


class TrainingDiverged(PycudaNNError):
    """The loss is infinite or NaN.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> config = nn.TrainConfig(optimizer="sgd", lr=1e20)
        >>> try:
        ...     result = nn.train(config, train)
        ... except nn.TrainingDiverged as error:
        ...     error.epoch
        1

    Attributes:
        epoch, step: Where the loss stopped being finite, counted from 1.
        lr: Learning rate of that step.
    """

    def __init__(
        self,
        *,
        epoch: int,
        step: int,
        lr: float,
        where: str = "training loss",
        scale_batch: int = 1,
        formulas: Sequence[str] = (),
    ) -> None:
        fix = f"Lower lr (try {lr / 10:.1g}), add warmup_epochs, or set scale = 'standard'."
        if scale_batch > 1:  # lr of the settings is lower than this rate
            fix = f"Lower scale_batch = {scale_batch}, set scale_rule = 'sqrt', or lower lr."
        if formulas:
            own = " and ".join(repr(formula) for formula in formulas)
            fix += f" Check where {own}, or the slope, is infinite or NaN."
        super().__init__(
            f"training diverged: the {where} is not finite in epoch {epoch}, step {step} "
            f"(learning rate {lr:.3g})",
            fix,
        )
        self.epoch = epoch
        self.step = step
        self.lr = lr


class CheckpointError(PycudaNNError):
    """The checkpoint cannot be read, written, or continued with these settings."""


class MissingCheckpoint(CheckpointError):
    """There is no such checkpoint."""

    exit_code = 2


class NotACheckpoint(CheckpointError):
    """The path is not that of a checkpoint: a directory, or another archive."""

    exit_code = 2


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MiB"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"Did you mean 'x'?"`` with the nearest of ``known``, or list all if none is near."""
    names = sorted(known)
    same = [name for name in names if name.casefold() == word.casefold()]
    near = same or difflib.get_close_matches(word, names, n=1, cutoff=0.55)
    return f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(names)}."
