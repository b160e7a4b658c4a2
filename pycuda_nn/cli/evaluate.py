"""The command ``pycuda-nn evaluate``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
import cloup

from pycuda_nn.cli.options import FILE, JSON, LABELS, HelpOption, check_source
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.data.sources import load_data, load_splits
from pycuda_nn.data.split import PARTS
from pycuda_nn.data.table import TableOptions
from pycuda_nn.errors import CheckpointError, ConfigError
from pycuda_nn.model import Model
from pycuda_nn.model import evaluate as metrics_of
from pycuda_nn.protocols import Metrics
from pycuda_nn.training import checkpoint as files


@cloup.command()
@cloup.option(
    "--checkpoint", cls=HelpOption, type=FILE, metavar="FILE", required=True,
    help="Evaluate the network in this checkpoint of pycuda-nn train. Required.",
)  # fmt: skip
@cloup.option(
    "--part", cls=HelpOption, type=click.Choice(PARTS), default="test",
    help="Evaluate this part of the source that was trained on, split as in training. "
    "Default: test.",
)  # fmt: skip
@cloup.option(
    "--data", "source", cls=HelpOption, metavar="SOURCE",
    help="Evaluate all rows of another source: digits, or a .npz, .npy, .csv, .csv.gz, .tsv or "
    ".parquet file. Default: --part of the source that was trained on.",
)  # fmt: skip
@LABELS
@cloup.option(
    "--target", cls=HelpOption, metavar="COLUMN",
    help="Take the labels from this column of a table, by name or number. "
    "Default: --target of the training, or the last.",
)  # fmt: skip
@JSON
def evaluate(
    checkpoint: Path,
    source: str | None,
    labels: Path | None,
    target: str | None,
    part: str,
    as_json: bool,
) -> None:
    """Print the loss and error of a trained network on held-out rows.

    \b
    Examples:
      pycuda-nn evaluate --checkpoint digits.npz
      pycuda-nn evaluate --checkpoint net.npz --data new.csv --target price --json
    """
    if source is None and (labels or target):
        raise ConfigError(
            "--labels and --target need --data", "Add --data, or remove --labels and --target."
        )
    saved = files.load(checkpoint)
    model = saved.model()
    if source is None:
        data = _training_part(saved, part, checkpoint)
    else:
        check_source(source, labels, target)
        data = _other_data(model, source, labels, target or saved.note.get("target"))
    metrics = metrics_of(model, data)
    if as_json:
        click.echo(json.dumps({"data": data.name, "rows": len(data), **asdict(metrics)}))
    else:
        click.echo(f"{data.name} ({len(data)} rows): {_line(model, data, metrics)}")


def _line(model: Model, data: Dataset, metrics: Metrics) -> str:
    if model.classes is not None:
        return f"loss {metrics.loss:.5f}  error {metrics.error:.5f}"
    deviation = float(data.y.std(dtype="float64"))
    return f"RMSE {metrics.error:.5g}  (deviation of the targets: {deviation:.5g})"


def _training_part(saved: files.Checkpoint, part: str, path: Path) -> Dataset:
    note = dict(saved.note)
    if "source" not in note:
        raise CheckpointError(
            f"{path} does not name the source that it was trained on",
            "Name a source with --data.",
        )
    source, labels = note.pop("source"), note.pop("labels")
    if "table" in note:
        note["table"] = TableOptions.from_dict(note["table"])
    note["task"] = "regress" if saved.classes is None else "classify"
    parts = load_splits(source, labels, **note)
    if files.fingerprint(parts.train) != saved.fingerprint:
        raise CheckpointError(
            f"{source} has changed since {path} was trained: its parts contain different rows",
            "Evaluate other rows with --data, or repeat the training.",
        )
    data: Dataset = getattr(parts, part)
    return data


def _other_data(model: Model, source: str, labels: Path | None, target: str | None) -> Dataset:
    return load_data(
        source,
        labels,
        target=target,
        task="regress" if model.classes is None else "classify",
        classes=model.classes,
        columns=model.columns,
        encoding=model.encoding,
    )
