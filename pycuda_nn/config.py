"""The settings of a training, validated at construction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pycuda_nn.errors import ConfigError, did_you_mean
from pycuda_nn.layers import LOSSES
from pycuda_nn.layers.activation import names
from pycuda_nn.layers.formulas import activation_problem, loss_problem

Problem = str | None
_Check = Callable[[Any], Problem]

_MOST_WIDTH = 1 << 24  # two layers of this width have more weights than fit in any memory


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a training; invalid values raise one ConfigError that lists all of them.

    ``hidden`` can also be a list or an array, and numbers can be numpy scalars, as hyperparameter
    searches pass them.

    Example:
        >>> import pycuda_nn as nn
        >>> config = nn.TrainConfig(hidden=(256, 128), lr=3e-3, epochs=50, patience=5)
        >>> config.optimizer
        'adam'

    Attributes:
        hidden: Width of each hidden layer; empty for a linear model.
        activation: ``relu``, ``tanh``, ``sigmoid``, ``elu``, ``gelu``, ``leaky_relu``, ``mish``,
            ``selu``, ``silu`` or ``softplus``; or a formula of ``x``: ``"x * sigmoid(2 * x)"``.
        loss: ``auto`` (softmax for classes, squared for numbers), ``softmax``, ``logistic``
            (two classes) or ``squared``; or a formula of one output ``z`` and its target ``y``, or
            of the log-softmax ``logp`` of a class, and ``y``, 1 for the class of the row, else 0.
        dropout: Probability of dropping an output of a hidden layer, in steps of 1/65536.
        l2: Add ``l2 / 2`` times the sum of the squared weights (not biases) to the loss.
        optimizer: ``sgd`` or ``adam``.
        lr: Peak learning rate.
        momentum, nesterov: Settings of ``sgd``; ``adam`` ignores them.
        beta1, beta2, eps: Settings of ``adam``; ``sgd`` ignores them.
        schedule: ``constant``, ``step`` or ``cosine``, after the warm-up.
        warmup_epochs: Epochs of linear warm-up; can be a fraction.
        step_epochs, step_factor: ``step`` multiplies the learning rate by ``step_factor`` every
            ``step_epochs`` epochs.
        lr_min: Final learning rate of ``cosine``.
        epochs: Number of epochs.
        batch_size: Rows of a minibatch; the last minibatch of an epoch can be smaller.
        scale_batch: Train in minibatches this many times as large, with the learning rate of
            ``scale_rule`` and a warm-up that starts at ``lr``: over ``warmup_epochs``, or if they
            are 0 over 5 epochs, but at most a tenth of ``epochs``. 1 changes nothing.
        scale_rule: Multiply ``lr`` and ``lr_min`` by ``scale_batch`` (``linear``, shown for
            ``sgd``) or by its square root (``sqrt``, usual for ``adam``).
        patience: Stop after this many epochs without a better validation value and return the
            best weights; ``None`` trains all epochs and returns the last weights.
        monitor: The validation value that ``patience`` compares: ``loss`` or ``error``.
        scale: Scale the features by statistics of the training rows: ``standard`` (mean 0,
            deviation 1), ``unit`` (0 to 1) or ``none``.
        scale_targets: Train on targets with mean 0 and deviation 1: ``standard``, ``none``, or
            ``auto``: ``standard`` for a table, ``none`` for arrays. Losses and predictions are in
            the unit of the targets in each case.
        seed: Seed of weights, order and dropout, 0 to 2**63 - 1.
    """

    hidden: tuple[int, ...] = (128,)
    activation: str = "relu"
    loss: str = "auto"
    dropout: float = 0.0
    l2: float = 0.0
    optimizer: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.9
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    schedule: str = "constant"
    warmup_epochs: float = 0.0
    step_epochs: int = 10
    step_factor: float = 0.1
    lr_min: float = 0.0
    epochs: int = 20
    batch_size: int = 64
    scale_batch: int = 1
    scale_rule: str = "linear"
    patience: int | None = None
    monitor: str = "loss"
    scale: str = "standard"
    scale_targets: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))
        problems = [
            f"{name} = {getattr(self, name)!r}: {problem}"
            for name, check in CHECKS.items()
            if (problem := check(getattr(self, name)))
        ]
        if not problems and self.warmup_epochs > self.epochs:
            problems.append(
                f"warmup_epochs = {self.warmup_epochs!r}: must be at most epochs = {self.epochs!r}"
            )
        if not problems and self.lr_min > self.lr:
            problems.append(f"lr_min = {self.lr_min!r}: must be at most lr = {self.lr!r}")
        if problems:
            raise ConfigError(f"{_count(problems)} in the settings:", problems=problems)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str = "the settings") -> TrainConfig:
        """Return the config of ``values``; an unknown key raises ConfigError with the nearest key.

        ``source`` is the name of the settings in the error message.
        """
        problems = [
            f"unknown key '{key}'. {did_you_mean(key, CHECKS)}"
            for key in values
            if key not in CHECKS
        ]
        if problems:
            try:
                cls(**{key: value for key, value in values.items() if key in CHECKS})
            except ConfigError as error:
                problems.extend(error.problems)
            raise ConfigError(f"{_count(problems)} in {source}:", problems=problems)
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; ``hidden`` is a list."""
        return {**dataclasses.asdict(self), "hidden": list(self.hidden)}


def require_config(given: object) -> None:
    """Raise ConfigError if ``given`` is not a TrainConfig."""
    if not isinstance(given, TrainConfig):
        raise ConfigError(
            f"the settings are of type {type(given).__name__}, not TrainConfig",
            "Make them by nn.TrainConfig(...).",
        )


def own_formulas(config: TrainConfig) -> list[str]:
    """Return the activation and the loss that are formulas of the user."""
    known = ("auto", *LOSSES, *names())
    return [text for text in (config.activation, config.loss) if text not in known]


def _plain(value: Any) -> Any:
    """Convert a numpy scalar to a Python scalar, and a list (from TOML) or an array to a tuple."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return tuple(_plain(item) for item in value)
    return value


def _count(problems: list[str]) -> str:
    return "1 problem" if len(problems) == 1 else f"{len(problems)} problems"


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(low: float, high: float, text: str, *, open_low: bool = False) -> _Check:
    def check(value: Any) -> Problem:
        good = _is_number(value) and low <= value <= high and not (open_low and value == low)
        return None if good else f"must be a number {text}"

    return check


def _integer(low: int, high: float = math.inf, text: str = "") -> _Check:
    def check(value: Any) -> Problem:
        good = _is_int(value) and low <= value <= high
        return None if good else f"must be a whole number {text or f'of at least {low}'}"

    return check


def _choice(*names: str) -> _Check:
    def check(value: Any) -> Problem:
        if value in names:
            return None
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        return f"must be one of {', '.join(names)}" + (f". {hint}" if "mean" in hint else "")

    return check


def _hidden(value: Any) -> Problem:
    good = isinstance(value, tuple) and all(
        _is_int(width) and 1 <= width <= _MOST_WIDTH for width in value
    )
    return None if good else f"must be a list of widths from 1 to {_MOST_WIDTH}, e.g. [128, 64]"


def _flag(value: Any) -> Problem:
    return None if isinstance(value, bool) else "must be true or false"


def _patience(value: Any) -> Problem:
    good = value is None or (_is_int(value) and value >= 1)
    return None if good else "must be a whole number of epochs of at least 1, or none"


_NEAR_1 = 0.999999  # below 1 in float32
_LEAST_EPS = 1e-37  # above 0 in float32

CHECKS: dict[str, _Check] = {
    "hidden": _hidden,
    "activation": lambda value: activation_problem(value, names()),
    "loss": lambda value: loss_problem(value, ("auto", *LOSSES)),
    "dropout": _number(0.0, 0.99, "from 0 to 0.99"),
    "l2": _number(0.0, math.inf, "of at least 0"),
    "optimizer": _choice("sgd", "adam"),
    "lr": _number(0.0, math.inf, "above 0", open_low=True),
    "momentum": _number(0.0, _NEAR_1, "from 0 to 0.999999"),
    "nesterov": _flag,
    "beta1": _number(0.0, _NEAR_1, "from 0 to 0.999999"),
    "beta2": _number(0.0, _NEAR_1, "from 0 to 0.999999"),
    "eps": _number(_LEAST_EPS, math.inf, f"of at least {_LEAST_EPS}"),
    "schedule": _choice("constant", "step", "cosine"),
    "warmup_epochs": _number(0.0, math.inf, "of at least 0"),
    "step_epochs": _integer(1),
    "step_factor": _number(0.0, 1.0, "above 0, at most 1", open_low=True),
    "lr_min": _number(0.0, math.inf, "of at least 0"),
    "epochs": _integer(1),
    "batch_size": _integer(1),
    "scale_batch": _integer(1, 1 << 20, f"from 1 to {1 << 20}"),
    "scale_rule": _choice("linear", "sqrt"),
    "patience": _patience,
    "monitor": _choice("loss", "error"),
    "scale": _choice("none", "standard", "unit"),
    "scale_targets": _choice("auto", "none", "standard"),
    "seed": _integer(0, 2**63 - 1, "from 0 to 2**63 - 1"),
}
