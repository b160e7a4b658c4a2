"""Checkpoints: one file from which a training resumes and a model predicts.

A ``.npz`` file of plain arrays (``state.*`` of the backend, ``best.params``, ``scaler.*``) and a
JSON text ``meta``; all backends write the same format. The file is replaced atomically: a reader
sees the old file or the new file, also after a kill.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.config import TrainConfig
from pycuda_nn.data.arrays import Label
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.data.npz import read_npz
from pycuda_nn.data.scaling import Scaler, TargetScaler
from pycuda_nn.data.table import Encoding
from pycuda_nn.errors import CheckpointError, MissingCheckpoint, NotACheckpoint, PycudaNNError
from pycuda_nn.layers import LOSSES, from_description
from pycuda_nn.model import Model
from pycuda_nn.network import Network
from pycuda_nn.protocols import State
from pycuda_nn.training.atomic_write import replace_file
from pycuda_nn.training.history import EpochReport, History
from pycuda_nn.training.resume import changed_settings

Array = npt.NDArray[Any]

FORMAT = 1
_SAMPLE_ROWS = 1024  # rows of x in the fingerprint: enough to distinguish data, fast to read


@dataclass(frozen=True, kw_only=True, eq=False)
class Checkpoint:
    """A training after a whole number of epochs.

    Attributes:
        config, network, classes, columns: As at the start of the training.
        scaler, targets, encoding: As learned from the training rows at its start.
        history: The finished epochs.
        state: State of the backend session after the last epoch.
        best: Parameters of the best epoch; saved only with ``patience``.
        fingerprint: Hash of the training rows; resuming with other rows is an error.
        valid_fingerprint: Hash of the validation rows, "" without them. ``None`` in older files.
        note: JSON values of the caller; the command line stores the source of the data.
    """

    config: TrainConfig
    network: Network
    classes: tuple[Label, ...] | None
    columns: tuple[str, ...] | None
    scaler: Scaler | None
    history: History
    state: State
    best: npt.NDArray[np.float32] | None
    fingerprint: str
    valid_fingerprint: str | None
    note: Mapping[str, Any] = field(default_factory=dict)
    targets: TargetScaler | None = None
    encoding: Encoding | None = None

    def model(self) -> Model:
        """Return the model that the training would return if it stopped now."""
        params = self.state["params"] if self.best is None else self.best
        return Model(
            network=self.network,
            params=params,
            scaler=self.scaler,
            classes=self.classes,
            columns=self.columns,
            targets=self.targets,
            encoding=self.encoding,
        )


def fingerprint(data: Dataset) -> str:
    """Return a hash of the shape, the labels and up to 1,024 evenly spaced rows."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((data.x.shape, data.classes)).encode())
    digest.update(np.ascontiguousarray(data.y).tobytes())
    digest.update(np.ascontiguousarray(data.x[:: max(1, len(data) // _SAMPLE_ROWS)]).tobytes())
    return digest.hexdigest()


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replace ``path`` by ``checkpoint`` atomically.

    Raises:
        CheckpointError: The directory is missing, full or not writable; the old file is unchanged.
    """
    arrays: dict[str, Array] = {f"state.{key}": value for key, value in checkpoint.state.items()}
    if checkpoint.best is not None:
        arrays["best.params"] = checkpoint.best
    if checkpoint.scaler is not None:
        arrays["scaler.shift"] = checkpoint.scaler.shift
        arrays["scaler.factor"] = checkpoint.scaler.factor
    if checkpoint.targets is not None:
        arrays["targets.shift"] = checkpoint.targets.shift
        arrays["targets.deviation"] = np.array(checkpoint.targets.deviation)
    arrays["meta"] = np.frombuffer(json.dumps(_meta(checkpoint)).encode(), dtype=np.uint8)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    try:
        replace_file(path, packed.getbuffer())
    except OSError as error:
        raise CheckpointError(
            f"cannot write checkpoint {path}: {error.strerror}",
            "Use a directory that exists, is writable and has free space.",
        ) from error


def load(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: The file is missing, damaged, or of another version.
    """
    if not path.is_file():
        if path.exists():
            raise NotACheckpoint(f"{path} is not a file", "Name a file, or remove it.")
        raise MissingCheckpoint(
            f"checkpoint {path} does not exist",
            f"Create it: pycuda-nn train --data SOURCE --checkpoint {path}",
        )
    try:
        arrays = read_npz(path)
        if "meta" not in arrays:
            raise NotACheckpoint(
                f"{path} is not a checkpoint: it has the arrays {', '.join(arrays) or 'none'}",
                "Name a file that pycuda-nn train --checkpoint wrote.",
            )
        meta = json.loads(arrays.pop("meta").tobytes())
        version = meta["format"]
        if version == FORMAT:
            return _unpack(meta, arrays)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"cannot read checkpoint {path}: {error}", "Repeat the training, or use another file."
        ) from error
    except NotACheckpoint:
        raise
    except PycudaNNError as error:
        raise CheckpointError(
            f"checkpoint {path} has settings of another version: {error.what}"
        ) from error
    raise CheckpointError(
        f"checkpoint {path} has format {version}, but this version reads format {FORMAT}",
        "Update starmint: a newer version wrote this file.",
    )


def load_model(path: str | Path) -> Model:
    """Return the model in checkpoint ``path``, with the best weights if trained with patience.

    Example:
        >>> import tempfile
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     config = nn.TrainConfig(epochs=1)
        ...     result = nn.train(config, train, valid, checkpoint=f"{folder}/digits.npz")
        ...     model = nn.load_model(f"{folder}/digits.npz")
        >>> bool((model.params == result.model.params).all())
        True
    """
    return load(Path(path)).model()


def check_same_training(old: Checkpoint, begin: Checkpoint, path: Path) -> None:
    """Raise CheckpointError unless resuming ``old`` gives the result of an uninterrupted training.

    ``begin`` is the current training before its first epoch.
    """
    changes = changed_settings(old.config, begin.config)
    if old.fingerprint != begin.fingerprint:
        changes.append("data: the training rows have changed")
    if old.valid_fingerprint not in (None, begin.valid_fingerprint):
        changes.append("data: the validation rows have changed")
    if not changes and old.network != begin.network:
        changes.append(f"network: {old.network} in the checkpoint, {begin.network} now")
    if changes:
        lines = "\n".join(f"  - {change}" for change in changes)
        raise CheckpointError(
            f"cannot resume {path}: it belongs to a different training:\n{lines}",
            "Use the same settings and data, or another checkpoint file.",
        )


def _meta(checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.config.as_dict()
    if config["scale_targets"] == "auto":  # older versions do not know the key
        del config["scale_targets"]
    if config["scale_batch"] == 1:  # nor these
        del config["scale_batch"], config["scale_rule"]
    meta = {
        "format": FORMAT,
        "config": config,
        "network": _describe(checkpoint.network, checkpoint.config),
        "classes": checkpoint.classes,
        "columns": checkpoint.columns,
        "reports": [asdict(report) for report in checkpoint.history.reports],
        "best_epoch": checkpoint.history.best_epoch,
        "fingerprint": checkpoint.fingerprint,
        "valid_fingerprint": checkpoint.valid_fingerprint,
        "note": dict(checkpoint.note),
    }
    if checkpoint.encoding is not None:  # older versions wrote none
        meta["encoding"] = checkpoint.encoding.as_dict()
    return meta


def _describe(network: Network, config: TrainConfig) -> dict[str, Any]:
    """Return plain values: the sizes if the settings define the rest, else every layer."""
    sizes = [network.inputs, *config.hidden, network.outputs]
    named = {"sizes": sizes, "activation": config.activation, "loss": network.loss.name}
    if network.loss.name in LOSSES and network == _network(named, config):
        return named
    layers = [layer.description() for layer in network.layers]
    return {"layers": layers, "loss": network.loss.description()}


def _network(values: Mapping[str, Any], config: TrainConfig) -> Network:
    if "sizes" in values:
        return Network.from_sizes(**values, dropout=config.dropout)
    layers = tuple(from_description(layer) for layer in values["layers"])
    return Network(layers, loss=from_description(values["loss"]))


def _check_shapes(network: Network, arrays: Mapping[str, Array]) -> None:
    """Raise KeyError or ValueError unless the arrays are those of ``network``."""
    of_parameters, of_inputs = (network.n_params,), (network.inputs,)
    wanted = {"state.params": of_parameters, "best.params": of_parameters}
    wanted |= {"scaler.shift": of_inputs, "scaler.factor": of_inputs}
    for name, shape in wanted.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"array {name} has shape {arrays[name].shape}, not {shape}")


def _unpack(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> Checkpoint:
    config = TrainConfig.from_mapping(meta["config"])
    network = _network(meta["network"], config)
    _check_shapes(network, arrays)
    scaler = None
    if "scaler.shift" in arrays:
        scaler = Scaler(shift=arrays["scaler.shift"], factor=arrays["scaler.factor"])
    targets = None
    if "targets.shift" in arrays:
        deviation = float(arrays["targets.deviation"])
        targets = TargetScaler(shift=arrays["targets.shift"], deviation=deviation)
    reports = tuple(EpochReport(**report) for report in meta["reports"])
    return Checkpoint(
        config=config,
        network=network,
        classes=None if meta["classes"] is None else tuple(meta["classes"]),
        columns=None if meta["columns"] is None else tuple(meta["columns"]),
        scaler=scaler,
        history=History(reports=reports, best_epoch=meta["best_epoch"]),
        state={key[6:]: value for key, value in arrays.items() if key.startswith("state.")},
        best=arrays.get("best.params"),
        fingerprint=meta["fingerprint"],
        valid_fingerprint=meta.get("valid_fingerprint"),
        note=meta["note"],
        targets=targets,
        encoding=Encoding.from_dict(meta["encoding"]) if "encoding" in meta else None,
    )
