"""History of a training: a report per epoch, the best epoch, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pycuda_nn.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class EpochReport:
    """Report of a finished epoch.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> result = nn.train(nn.TrainConfig(epochs=2), train, valid)
        >>> [report.epoch for report in result.history]
        [1, 2]

    Attributes:
        epoch: Number of the epoch, from 1.
        train_loss: Mean loss of the steps of the epoch, with dropout and without L2.
        valid_loss, valid_error: Values after the epoch; ``None`` without validation data.
        lr: Learning rate of the last step.
        seconds: Wall time of training and validation; since the report before, if the device
            trained while the host handled that.
    """

    epoch: int
    train_loss: float
    valid_loss: float | None
    valid_error: float | None
    lr: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class History:
    """All reports in order, and the number of the best epoch, from 1; 0 before the first."""

    reports: tuple[EpochReport, ...] = ()
    best_epoch: int = 0

    @property
    def best(self) -> EpochReport:
        """The epoch with the lowest monitored value; the last epoch without validation data."""
        return self.reports[self.best_epoch - 1]

    def add(self, report: EpochReport, config: TrainConfig) -> History:
        """Return the history with ``report`` added; an equal value is not better."""
        value, lowest = _value(report, config), None
        if self.best_epoch:
            lowest = _value(self.best, config)
        better = value is None or lowest is None or value < lowest
        best = report.epoch if better else self.best_epoch
        return replace(self, reports=(*self.reports, report), best_epoch=best)

    def finished(self, config: TrainConfig) -> bool:
        """Return whether all epochs have run or early stopping applies."""
        return len(self.reports) >= config.epochs or self.out_of_patience(config)

    def out_of_patience(self, config: TrainConfig) -> bool:
        """Return whether the last ``patience`` epochs had no better value."""
        waited = len(self.reports) - self.best_epoch
        return config.patience is not None and waited >= config.patience


def _value(report: EpochReport, config: TrainConfig) -> float | None:
    return report.valid_loss if config.monitor == "loss" else report.valid_error
