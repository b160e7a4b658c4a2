"""The command ``pycuda-nn predict``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import cloup

from pycuda_nn.cli.options import FILE, HelpOption
from pycuda_nn.cli.predictions import write_predictions
from pycuda_nn.data.sources import load_features
from pycuda_nn.errors import ConfigError
from pycuda_nn.training import checkpoint as files


@cloup.command()
@cloup.option(
    "--checkpoint", cls=HelpOption, type=FILE, metavar="FILE", required=True,
    help="Use the network in this checkpoint of pycuda-nn train. Required.",
)  # fmt: skip
@cloup.option(
    "--data", "source", cls=HelpOption, metavar="SOURCE", required=True,
    help="Predict the rows of this source: digits, or a .npz, .npy, .csv, .csv.gz, .tsv or "
    ".parquet file. Required.",
)  # fmt: skip
@cloup.option(
    "--out", cls=HelpOption, type=FILE, metavar="FILE",
    help="Write to this .csv or .npy file. Default: CSV on standard output.",
)  # fmt: skip
@cloup.option("--probabilities", is_flag=True, help="Add the probability of each class.")
def predict(checkpoint: Path, source: str, out: Path | None, probabilities: bool) -> None:
    """Predict the label or value of each row.

    The rows need no labels. A .npy file gets the labels, or with --probabilities only the
    probabilities.

    \b
    Examples:
      pycuda-nn predict --checkpoint digits.npz --data new.csv --out predictions.csv
      pycuda-nn predict --checkpoint digits.npz --data x.npy --probabilities --out p.npy
    """
    if out is not None and out.suffix not in (".csv", ".npy"):
        raise ConfigError(f"--out {out}: unknown file type", "Use a name ending in .csv or .npy.")
    model = files.load(checkpoint).model()
    if probabilities and model.classes is None:
        raise ConfigError(
            "--probabilities: this model predicts values, not classes", "Remove --probabilities."
        )
    width = model.network.inputs
    x, _ = load_features(source, width=width, columns=model.columns, encoding=model.encoding)
    write_predictions(model, x, out, sys.stdout, probabilities=probabilities)
    if out is not None:
        click.echo(f"{len(x)} predictions in {out}", err=True)
