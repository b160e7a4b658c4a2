"""The training loop: epochs, validation, early stopping and checkpoints, for any device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends import pick
from pycuda_nn.config import TrainConfig
from pycuda_nn.data.dataset import Dataset, in_order
from pycuda_nn.data.scaling import Scaler, TargetScaler, scaled
from pycuda_nn.errors import ConfigError, DataError, EmptyData, TrainingDiverged
from pycuda_nn.model import Model
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend, Session, Split
from pycuda_nn.rng import EpochOrder
from pycuda_nn.training import checkpoint as files
from pycuda_nn.training.checkpoint import Checkpoint
from pycuda_nn.training.fit_to_data import check_network, network_for, recipe
from pycuda_nn.training.history import EpochReport, History
from pycuda_nn.training.learning_rate import learning_rates

OnEpoch = Callable[[EpochReport], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainResult:
    """Result of a training.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> result = nn.train(nn.TrainConfig(epochs=3), train, valid)
        >>> len(result.history), result.stopped_early
        (3, False)

    Attributes:
        model: The best weights if ``patience`` was set, else the last weights.
        history: One report per epoch.
        best: Report with the lowest monitored validation value; the last without validation data.
        stopped_early: Whether early stopping ended the training.
    """

    model: Model
    history: tuple[EpochReport, ...]
    best: EpochReport
    stopped_early: bool


def train(
    config: TrainConfig,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    on_epoch: OnEpoch | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    backend: str | Backend = "auto",
    note: Mapping[str, Any] | None = None,
    network: Network | None = None,
) -> TrainResult:
    """Train a network on ``train``; ``valid`` is only evaluated.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> result = nn.train(nn.TrainConfig(epochs=10), train, valid)
        >>> nn.evaluate(result.model, test).error < 0.1
        True

    Args:
        config: The settings.
        train, valid: Parts of one source; an empty ``valid`` is the same as None.
        on_epoch: Called with each report, after the checkpoint is saved; an exception that it
            raises stops the training.
        checkpoint: File to replace after every epoch.
        resume: Continue from ``checkpoint`` if the file exists. The result is the same as without
            the interruption, bit for bit on the same machine.
        backend: ``auto``, a name, or a backend.
        note: JSON values to store in the checkpoint.
        network: Layers and loss to train. The settings ``hidden``, ``activation``, ``dropout`` and
            ``loss`` are then ignored.

    Raises:
        ConfigError: The settings or the network do not fit the data.
        DataError: The parts do not fit each other.
        TrainingDiverged: A loss is not finite; the checkpoint contains the last good epoch.
        CheckpointError: The checkpoint is damaged, of another training, or cannot be written.
    """
    chosen = pick(backend, network=network) if isinstance(backend, str) else backend
    valid = valid if valid is not None and len(valid) else None
    path = None if checkpoint is None else Path(checkpoint)
    begin = _begin(config, train, valid, note or {}, network)
    if path is not None and resume and path.exists():
        old = files.load(path)
        files.check_same_training(old, begin, path)
        if old.history.finished(config):
            return _result(old, config)
        begin = old
    parts = {"train": _split(train, begin)}
    if valid is not None:
        parts["valid"] = _split(valid, begin)
    session = chosen.open(begin.network, recipe(config), parts, begin.state["params"])
    try:
        if begin.history.reports:
            session.load_state(begin.state)
        end = _epochs(session, config, begin, parts, path, on_epoch)
    finally:
        session.close()
    return _result(end, config)


def _split(data: Dataset, begin: Checkpoint) -> Split:
    y = data.y if begin.targets is None else begin.targets.apply(data.y)
    return Split(x=scaled(data.x, begin.scaler), y=y)


def _target_scaler(config: TrainConfig, train: Dataset, network: Network) -> TargetScaler | None:
    wanted = config.scale_targets == "standard" and train.classes is None
    if wanted and network.loss.name != "squared":
        raise ConfigError(
            f"scale_targets = 'standard' needs the loss squared, not {network.loss.label}",
            "Set scale_targets = 'none'.",
        )
    if config.scale_targets == "auto":
        table = train.encoding is not None
        wanted = table and train.classes is None and network.loss.name == "squared"
    return TargetScaler.fit(train.y) if wanted else None


def _begin(
    config: TrainConfig,
    train: Dataset,
    valid: Dataset | None,
    note: Mapping[str, Any],
    network: Network | None,
) -> Checkpoint:
    """Check the arguments and return the training before its first epoch."""
    if config.patience is not None and valid is None:
        raise ConfigError(
            f"patience = {config.patience} needs validation data",
            "Pass validation data, or remove patience.",
        )
    if not len(train):
        raise EmptyData(f"{train.name}: no training rows", "Set its fraction above 0.")
    if valid is not None and (
        valid.x.shape[1] != train.x.shape[1]
        or valid.classes != train.classes
        or valid.y.shape[1:] != train.y.shape[1:]
        or valid.encoding != train.encoding
        or not in_order(valid.columns, train.columns)
    ):
        raise DataError(
            f"{valid.name} and {train.name} differ in columns or classes",
            "Pass parts of one split.",
        )
    network = network_for(config, train) if network is None else check_network(network, train)
    return Checkpoint(
        config=config,
        network=network,
        classes=train.classes,
        columns=train.columns,
        scaler=Scaler.fit(train.x, config.scale),
        history=History(),
        state={"params": network.initial_params(config.seed)},
        best=None,
        fingerprint=files.fingerprint(train),
        valid_fingerprint="" if valid is None else files.fingerprint(valid),
        note=note,
        targets=_target_scaler(config, train, network),
        encoding=train.encoding,
    )


def _epochs(
    session: Session,
    config: TrainConfig,
    begin: Checkpoint,
    parts: Mapping[str, Split],
    path: Path | None,
    on_epoch: OnEpoch | None,
) -> Checkpoint:
    history, best = begin.history, begin.best
    while not history.finished(config):
        report = _epoch(session, config, len(history.reports), parts, begin.targets)
        history = history.add(report, config)
        if config.patience is not None and history.best is report:
            best = session.params()
        if path is not None:
            files.save(path, _now(begin, config, history, best, session))
        if on_epoch is not None:
            on_epoch(report)
    return _now(begin, config, history, best, session)


def _now(
    begin: Checkpoint,
    config: TrainConfig,
    history: History,
    best: npt.NDArray[np.float32] | None,
    session: Session,
) -> Checkpoint:
    return replace(begin, config=config, history=history, state=session.state(), best=best)


def _epoch(
    session: Session,
    config: TrainConfig,
    epoch: int,
    parts: Mapping[str, Split],
    targets: TargetScaler | None,
) -> EpochReport:
    started = time.perf_counter()
    n, size = len(parts["train"].x), config.batch_size
    steps = -(-n // size)
    rates = learning_rates(config, epoch, steps)
    losses = session.run_epoch(EpochOrder(n=n, seed=config.seed, epoch=epoch), rates)
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        step = int(bad[0])
        raise TrainingDiverged(epoch=epoch + 1, step=step + 1, lr=float(rates[step]))
    rows = np.full(steps, size)
    rows[-1] = n - size * (steps - 1)
    lr = float(rates[-1])
    valid = session.evaluate("valid") if "valid" in parts else None
    if valid is not None and not np.isfinite(valid.loss):
        where = "validation loss"
        raise TrainingDiverged(epoch=epoch + 1, step=steps, lr=lr, where=where)
    train_loss = float(losses.astype(np.float64) @ rows) / n
    valid_loss, valid_error = (None, None) if valid is None else (valid.loss, valid.error)
    if targets is not None:
        train_loss, _ = targets.in_unit(train_loss, 0.0)
        if valid is not None:
            valid_loss, valid_error = targets.in_unit(valid.loss, valid.error)
    return EpochReport(
        epoch=epoch + 1,
        train_loss=train_loss,
        valid_loss=valid_loss,
        valid_error=valid_error,
        lr=lr,
        seconds=time.perf_counter() - started,
    )


def _result(end: Checkpoint, config: TrainConfig) -> TrainResult:
    return TrainResult(
        model=end.model(),
        history=end.history.reports,
        best=end.history.best,
        stopped_early=len(end.history.reports) < config.epochs,
    )
