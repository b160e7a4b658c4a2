"""The training loop: epochs, validation, early stopping and checkpoints, for any device."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pycuda_nn.backends import pick
from pycuda_nn.config import TrainConfig, require_config
from pycuda_nn.data.dataset import Dataset, in_order
from pycuda_nn.data.scaling import TargetScaler
from pycuda_nn.errors import ConfigError, DataError, EmptyData
from pycuda_nn.model import Model
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend
from pycuda_nn.training import checkpoint as files
from pycuda_nn.training.checkpoint import Checkpoint
from pycuda_nn.training.facts import DataFacts
from pycuda_nn.training.fit_to_data import check_network, network_for, recipe
from pycuda_nn.training.history import EpochReport, History
from pycuda_nn.training.large_batch import check_rows, summary
from pycuda_nn.training.run import OnEpoch, TrainingRun

_LOG = logging.getLogger("pycuda_nn")


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
    require_config(config)
    chosen = pick(backend, network=network) if isinstance(backend, str) else backend
    facts = DataFacts(train, valid)
    path = None if checkpoint is None else Path(checkpoint)
    begin = begin_of(config, facts, note or {}, network)
    if path is not None and resume and path.exists():
        begin = resumed(begin, path)
        if begin.history.finished(config):
            return result_of(begin, config)
    announce([config])
    parts = facts.parts(begin)
    session = chosen.open(begin.network, recipe(config), parts, begin.state["params"])
    try:
        kept = path if chosen.saves else None
        run = TrainingRun(session, config, begin, parts, kept, on_epoch)
        while not run.finished:
            run.take(session.run_epoch(*run.inputs()))
        end = run.ended()
    finally:
        session.close()
    return result_of(end, config)


def announce(configs: Iterable[TrainConfig]) -> None:
    """Log the settings that ``scale_batch`` changes, each once."""
    for line in dict.fromkeys(map(summary, configs)):
        if line is not None:
            _LOG.info("%s", line)


def resumed(begin: Checkpoint, path: Path) -> Checkpoint:
    """Return the training in ``path``, which must be a later state of ``begin``."""
    old = files.load(path)
    files.check_same_training(old, begin, path)
    return old


def _target_scaler(config: TrainConfig, facts: DataFacts, network: Network) -> TargetScaler | None:
    train = facts.train
    wanted = config.scale_targets == "standard" and train.classes is None
    if wanted and network.loss.name != "squared":
        raise ConfigError(
            f"scale_targets = 'standard' needs the loss squared, not {network.loss.label}",
            "Set scale_targets = 'none'.",
        )
    if config.scale_targets == "auto":
        table = train.encoding is not None
        wanted = table and train.classes is None and network.loss.name == "squared"
    return facts.targets if wanted else None


def begin_of(
    config: TrainConfig,
    facts: DataFacts,
    note: Mapping[str, Any],
    network: Network | None,
) -> Checkpoint:
    """Check the arguments and return the training before its first epoch."""
    train, valid = facts.train, facts.valid
    if config.patience is not None and valid is None:
        raise ConfigError(
            f"patience = {config.patience} needs validation data",
            "Pass validation data, or remove patience.",
        )
    if not len(train):
        raise EmptyData(f"{train.name}: no training rows", "Set its fraction above 0.")
    check_rows(config, len(train))
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
    if network is None:
        network = network_for(config, train)
        initial = facts.initial_params(network, config.seed)
    else:  # its layers are those of the user, and possibly not hashable
        network = check_network(network, train)
        initial = network.initial_params(config.seed)
    of_train, of_valid = facts.fingerprints
    return Checkpoint(
        config=config,
        network=network,
        classes=train.classes,
        columns=train.columns,
        scaler=facts.scaler(config.scale),
        history=History(),
        state={"params": initial},
        best=None,
        fingerprint=of_train,
        valid_fingerprint=of_valid,
        note=note,
        targets=_target_scaler(config, facts, network),
        encoding=train.encoding,
    )


def result_of(end: Checkpoint, config: TrainConfig) -> TrainResult:
    """Return the result of a training that ended at ``end``."""
    return TrainResult(
        model=end.model(),
        history=end.history.reports,
        best=end.history.best,
        stopped_early=len(end.history.reports) < config.epochs,
    )
