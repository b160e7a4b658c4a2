"""The command ``pycuda-nn evaluate``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from pycuda_nn.cli.sources import FILE, check_source
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.data.sources import load_data, load_splits
from pycuda_nn.data.split import PARTS
from pycuda_nn.errors import CheckpointError, ConfigError
from pycuda_nn.model import Model
from pycuda_nn.model import evaluate as metrics_of
from pycuda_nn.training import checkpoint as files


@click.command()
@click.option("--checkpoint", type=FILE, required=True, help="Written by train.")
@click.option(
    "--data", "source", metavar="SOURCE", help="Other data than that of the training; all rows."
)
@click.option("--labels", type=FILE, help="Labels of a .npy source, a .npy file.")
@click.option("--target", metavar="COLUMN", help="Label column of a table; default: the last.")
@click.option(
    "--part", type=click.Choice(PARTS), default="test", show_default=True,
    help="Part of the training's data to evaluate, cut as in training.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def evaluate(
    checkpoint: Path,
    source: str | None,
    labels: Path | None,
    target: str | None,
    part: str,
    as_json: bool,
) -> None:
    """Print loss and error of a trained network on held-out rows.

    \b
    Examples:
      pycuda-nn evaluate --checkpoint digits.npz
      pycuda-nn evaluate --checkpoint net.npz --data new.csv --target price --json
    """
    if source is None and (labels or target):
        raise ConfigError("--labels and --target go with --data", "Give --data, or drop them.")
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
        name = "RMSE" if model.classes is None else "error"
        click.echo(
            f"{data.name} ({len(data)} rows): loss {metrics.loss:.5f}  {name} {metrics.error:.5f}"
        )


def _training_part(saved: files.Checkpoint, part: str, path: Path) -> Dataset:
    note = dict(saved.note)
    if "source" not in note:
        raise CheckpointError(f"{path} does not say where its data came from", "Give --data.")
    source, labels = note.pop("source"), note.pop("labels")
    parts = load_splits(source, labels, **note)
    if files.fingerprint(parts.train) != saved.fingerprint:
        raise CheckpointError(
            f"{source} has changed since the training of {path}: its parts are other rows now",
            "Evaluate on other rows with --data, or train again.",
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
    )
