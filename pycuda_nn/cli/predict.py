"""The command ``pycuda-nn predict``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pycuda_nn.cli.predictions import write_predictions
from pycuda_nn.cli.sources import FILE
from pycuda_nn.data.sources import load_features
from pycuda_nn.errors import ConfigError
from pycuda_nn.training import checkpoint as files


@click.command()
@click.option("--checkpoint", type=FILE, required=True, help="Written by train.")
@click.option("--data", "source", required=True, metavar="SOURCE", help="Rows without labels.")
@click.option(
    "--out", type=FILE, default=None, help="A .csv or .npy file; default: CSV on standard output."
)
@click.option("--probabilities", is_flag=True, help="Also the probability of each class.")
def predict(checkpoint: Path, source: str, out: Path | None, probabilities: bool) -> None:
    """Predict the label or the value of each row.

    \b
    Examples:
      pycuda-nn predict --checkpoint digits.npz --data new.csv --out predictions.csv
      pycuda-nn predict --checkpoint digits.npz --data x.npy --probabilities --out p.npy
    """
    if out is not None and out.suffix not in (".csv", ".npy"):
        raise ConfigError(f"--out {out}: not a .csv or .npy file", "Give one of these endings.")
    model = files.load(checkpoint).model()
    if probabilities and model.classes is None:
        raise ConfigError("--probabilities: this model predicts values, not classes", "Drop it.")
    width = model.network.inputs
    x, _ = load_features(source, width=width, columns=model.columns)
    write_predictions(model, x, out, sys.stdout, probabilities=probabilities)
    if out is not None:
        click.echo(f"{len(x)} predictions in {out}", err=True)
