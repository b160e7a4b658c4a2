"""One training between its epochs: the next order and rates, reports, divergence, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.config import TrainConfig, own_formulas
from pycuda_nn.errors import TrainingDiverged
from pycuda_nn.protocols import Session, Split
from pycuda_nn.rng import EpochOrder
from pycuda_nn.training import checkpoint as files
from pycuda_nn.training.checkpoint import Checkpoint
from pycuda_nn.training.history import EpochReport
from pycuda_nn.training.large_batch import step_settings
from pycuda_nn.training.learning_rate import Rates, learning_rates

Array = npt.NDArray[Any]
OnEpoch = Callable[[EpochReport], object]
_SHORT_S = 0.05  # of an epoch; the host takes a tenth of a millisecond


class TrainingRun:
    """Runs from one checkpoint to the end of a training; the caller runs the epochs."""

    def __init__(
        self,
        session: Session,
        config: TrainConfig,
        begin: Checkpoint,
        parts: Mapping[str, Split],
        path: Path | None,
        on_epoch: OnEpoch | None,
        *,
        ends_on_true: bool = False,
    ) -> None:
        """Load the state of ``begin`` into ``session``, which stands at step 0.

        Args:
            session: Where the epochs run.
            config: The settings, possibly with more epochs than in ``begin``.
            begin: The training so far.
            parts: The rows, scaled.
            path: Checkpoint to replace after every epoch.
            on_epoch: Called with each report, after the checkpoint is saved.
            ends_on_true: Whether the caller ends the training if ``on_epoch`` returns True.
        """
        self._session, self._config, self._begin = session, config, begin
        self._parts, self._path, self._on_epoch = parts, path, on_epoch
        can_end = ends_on_true and on_epoch is not None
        self._reads_state = path is not None or config.patience is not None or can_end
        self._history, self._best = begin.history, begin.best
        used = step_settings(config)
        self._batch, self._warm_epochs = used.batch_size, used.warmup_epochs
        self._started, self._reported, self._rates = 0.0, 0.0, np.empty(0)
        self._constant: Rates | None = None  # of every epoch after those that warm up
        self._later: tuple[EpochOrder, Rates] | None = None  # what the session expects
        if begin.history.reports:
            session.load_state(begin.state)

    @property
    def finished(self) -> bool:
        """Whether all epochs have run or early stopping applies."""
        return self._history.finished(self._config)

    def inputs(self) -> tuple[EpochOrder, Rates]:
        """Return the arguments of ``run_epoch`` for the next epoch.

        Its time starts now, or at the report before if the device has trained since then.
        """
        known, self._later = self._later, None
        self._started = self._reported if known else time.perf_counter()
        order, self._rates = known or self._inputs_of(len(self._history.reports))
        self._look_ahead()
        return order, self._rates

    def _look_ahead(self) -> None:
        """Name the epoch after the next one to the session if nobody needs the state before it.

        A long epoch gains nothing, and a callback that raises an exception would wait for it.
        """
        config, reports = self._config, self._history.reports
        if self._reads_state:
            return
        if reports and reports[-1].seconds < _SHORT_S and len(reports) + 1 < config.epochs:
            later = self._inputs_of(len(reports) + 1)
            self._later = later if self._session.expect(*later) else None

    def _inputs_of(self, epoch: int) -> tuple[EpochOrder, Rates]:
        """Return the arguments of an epoch, from 0."""
        config, n = self._config, len(self._parts["train"].x)
        order = EpochOrder(n=n, seed=config.seed, epoch=epoch)
        if config.schedule == "constant" and epoch > self._warm_epochs:
            if self._constant is None:
                self._constant = learning_rates(config, epoch, -(-n // self._batch))
            return order, self._constant
        return order, learning_rates(config, epoch, -(-n // self._batch))

    def take(self, losses: Array) -> object:
        """Evaluate and record the epoch with these losses; return the answer of ``on_epoch``.

        Raises:
            TrainingDiverged: A loss is not finite; the checkpoint keeps the epoch before.
        """
        report = self._report(losses)
        self._history = self._history.add(report, self._config)
        if self._config.patience is not None and self._history.best is report:
            self._best = self._session.params()
        if self._path is not None:
            files.save(self._path, self.now())
        return None if self._on_epoch is None else self._on_epoch(report)

    def now(self) -> Checkpoint:
        """Return the training after the last epoch."""
        return replace(
            self._begin,
            config=self._config,
            history=self._history,
            state=self._session.state(),
            best=self._best,
        )

    def ended(self) -> Checkpoint:
        """Return the training after its last epoch; its state is only the parameters."""
        params = self._session.params() if self._best is None else self._best
        return replace(
            self._begin,
            config=self._config,
            history=self._history,
            state={"params": params},
            best=self._best,
        )

    def _report(self, losses: Array) -> EpochReport:
        epoch, rates, size = len(self._history.reports) + 1, self._rates, self._batch
        n, steps = len(self._parts["train"].x), len(rates)
        rows = np.full(steps, size)
        rows[-1] = n - size * (steps - 1)
        train_loss = float(losses.astype(np.float64) @ rows) / n
        if not np.isfinite(train_loss):
            step = int(np.flatnonzero(~np.isfinite(losses))[0])
            raise self._diverged(epoch, step + 1, "training loss")
        valid = self._session.evaluate("valid") if "valid" in self._parts else None
        if valid is not None and not np.isfinite(valid.loss):
            raise self._diverged(epoch, steps, "validation loss")
        valid_loss, valid_error = (None, None) if valid is None else (valid.loss, valid.error)
        targets = self._begin.targets
        if targets is not None:
            train_loss, _ = targets.in_unit(train_loss, 0.0)
            if valid is not None:
                valid_loss, valid_error = targets.in_unit(valid.loss, valid.error)
        self._reported = time.perf_counter()
        return EpochReport(
            epoch=epoch,
            train_loss=train_loss,
            valid_loss=valid_loss,
            valid_error=valid_error,
            lr=float(rates[-1]),
            seconds=self._reported - self._started,
        )

    def _diverged(self, epoch: int, step: int, where: str) -> TrainingDiverged:
        return TrainingDiverged(
            epoch=epoch,
            step=step,
            lr=float(self._rates[step - 1]),
            where=where,
            scale_batch=self._config.scale_batch,
            formulas=own_formulas(self._config),
        )
