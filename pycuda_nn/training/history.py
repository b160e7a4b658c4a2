"""What happened so far in a training: one report an epoch, the best, when to stop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pycuda_nn.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class EpochReport:
    """One finished epoch.

    Attributes:
        epoch: Counted from 1.
        train_loss: Mean over the epoch while training (dropout on, weights moving), without L2.
        valid_loss, valid_error: After the epoch; ``None`` without validation data.
        lr: Learning rate of its last step.
        seconds: Wall time of training and validation in this epoch.
    """

    epoch: int
    train_loss: float
    valid_loss: float | None
    valid_error: float | None
    lr: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class History:
    """All reports in order, and the epoch (from 1) that was best; 0 before the first."""

    reports: tuple[EpochReport, ...] = ()
    best_epoch: int = 0

    @property
    def best(self) -> EpochReport:
        """The epoch with the lowest monitored value; the last one without validation data."""
        return self.reports[self.best_epoch - 1]

    def add(self, report: EpochReport, config: TrainConfig) -> History:
        """Return the history with one more epoch; an equal value is not better."""
        value, lowest = _value(report, config), None
        if self.best_epoch:
            lowest = _value(self.best, config)
        better = value is None or lowest is None or value < lowest
        best = report.epoch if better else self.best_epoch
        return replace(self, reports=(*self.reports, report), best_epoch=best)

    def finished(self, config: TrainConfig) -> bool:
        """Return whether all epochs ran or the patience is over."""
        return len(self.reports) >= config.epochs or self.out_of_patience(config)

    def out_of_patience(self, config: TrainConfig) -> bool:
        """Return whether the last ``patience`` epochs brought nothing better."""
        waited = len(self.reports) - self.best_epoch
        return config.patience is not None and waited >= config.patience


def _value(report: EpochReport, config: TrainConfig) -> float | None:
    return report.valid_loss if config.monitor == "loss" else report.valid_error
