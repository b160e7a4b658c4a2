"""Compare the defaults of ``pycuda-nn train`` on tables with those of scikit-learn's networks.

python benchmarks/tables.py --seeds 8

Each table is written as CSV and split by each seed into 60 % training, 20 % validation and 20 %
test rows. ``pycuda-nn train`` uses the first two parts with its default settings. MLPClassifier or
MLPRegressor, behind a StandardScaler and with its default settings, trains on both parts together:
it needs no validation rows. Both see the same features: those that pycuda_nn makes of the columns.
Six tables are bundled with scikit-learn; the settings were not chosen on the tables marked
"held out", which are generated, with noise, text and missing cells.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import logging
import os
import statistics
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must precede the import of numpy

import numpy as np

import pycuda_nn as nn
from pycuda_nn.cli.main import cli

BUNDLED = ("iris", "wine", "breast_cancer", "digits", "diabetes", "linnerud")


def bundled(name: str) -> tuple[list[str], list[list[Any]]]:
    """Return the header and rows of a table of scikit-learn; the target is the last column."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    options = {"scaled": False} if name == "diabetes" else {}
    bunch = getattr(datasets, f"load_{name}")(**options)
    target = bunch.target[:, 0] if name == "linnerud" else bunch.target
    names = [str(column).replace(" ", "_") for column in bunch.feature_names]
    rows = [[*row, label] for row, label in zip(bunch.data.tolist(), target.tolist(), strict=True)]
    return [*names, "target"], rows


def held_out(name: str) -> tuple[list[str], list[list[Any]]]:
    """Return a generated table: a column became text, a tenth of the cells is missing."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    rng = np.random.default_rng(8)
    if name == "held out, classes":
        x, y = datasets.make_classification(
            900, 12, n_informative=6, n_classes=4, flip_y=0.03, random_state=8
        )
    else:
        x, y = datasets.make_friedman2(600, noise=60.0, random_state=8)
    x = x.round(4)
    words = np.array(["low", "middle", "high", "top"])
    text = words[np.digitize(x[:, 0], np.quantile(x[:, 0], [0.25, 0.5, 0.75]))]
    gaps = rng.random(x.shape) < 0.1
    rows = [
        [
            word,
            *("" if gap else value for gap, value in zip(holes[1:], row[1:], strict=True)),
            label,
        ]
        for word, holes, row, label in zip(text, gaps, x.tolist(), y.tolist(), strict=True)
    ]
    return ["text", *(f"x{i}" for i in range(1, x.shape[1])), "target"], rows


def ours(file: Path, seed: int, folder: Path) -> float:
    """Return the test error, or RMSE, of the command with its defaults."""
    net = folder / "net.npz"
    common = ["--split-seed", str(seed), "--set", f"seed={seed}", "--overwrite"]
    run(["train", "--data", str(file), "--checkpoint", str(net), "--backend", "numpy", *common])
    return float(json.loads(run(["evaluate", "--checkpoint", str(net), "--json"]))["error"])


def run(args: list[str]) -> str:
    """Run a command of pycuda-nn; return its standard output."""
    testing: Any = importlib.import_module("click.testing")
    result = testing.CliRunner().invoke(cli, args, catch_exceptions=False)
    if result.exit_code:
        raise SystemExit(result.output)
    return str(result.stdout)


def theirs(file: Path, seed: int, *, scaled: bool = False) -> float:
    """Return the test error, or RMSE, of scikit-learn's network with its defaults.

    ``scaled`` scales the targets of a regression, which its defaults do not.
    """
    network: Any = importlib.import_module("sklearn.neural_network")
    pipeline: Any = importlib.import_module("sklearn.pipeline")
    preprocessing: Any = importlib.import_module("sklearn.preprocessing")
    parts = nn.load_splits(file, seed=seed)
    train = nn.concat(parts.train, parts.valid)
    regress = train.classes is None
    learner = network.MLPRegressor if regress else network.MLPClassifier
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), learner(random_state=seed))
    if scaled:
        compose: Any = importlib.import_module("sklearn.compose")
        model = compose.TransformedTargetRegressor(
            model, transformer=preprocessing.StandardScaler()
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 200 epochs were not enough
        model.fit(train.x, train.y.ravel())
    wrong = model.predict(parts.test.x) - parts.test.y.ravel()
    return float(np.sqrt(np.mean(wrong**2)) if regress else np.mean(wrong != 0))


def results(seeds: int, folder: Path) -> Iterator[tuple[str, int, list[list[float]]]]:
    """Yield (table, rows, errors of pycuda_nn, of scikit-learn, and with scaled targets)."""
    tables = dict.fromkeys(BUNDLED, bundled)
    tables |= dict.fromkeys(("held out, classes", "held out, numbers"), held_out)
    for name, make in tables.items():
        header, rows = make(name)
        file = folder / f"{name}.csv"
        with file.open("w", newline="") as out:
            csv.writer(out).writerows([header, *rows])
        errors = [
            [ours(file, seed, folder) for seed in range(seeds)],
            [theirs(file, seed) for seed in range(seeds)],
        ]
        if nn.load_splits(file).train.classes is None:
            errors.append([theirs(file, seed, scaled=True) for seed in range(seeds)])
        yield name, len(rows), errors


def main() -> None:
    """Print a row for each table; values of scikit-learn that are lower are marked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=8, help="splits and trainings of each table")
    seeds = parser.parse_args().seeds
    logging.disable()
    heads = ("pycuda_nn", "scikit-learn", "scaled targets")
    print(f"{'table':20} {'rows':>5}" + "".join(f"{head:>20}" for head in heads))
    print("median (mean) of error or RMSE; * where scikit-learn has the lower median")
    with tempfile.TemporaryDirectory() as folder:
        for name, rows, errors in results(seeds, Path(folder)):
            middle = [statistics.median(each) for each in errors]
            cells = [
                f"{median:.4g} ({statistics.mean(each):.4g}){'*' if median < middle[0] else ''}"
                for median, each in zip(middle, errors, strict=True)
            ]
            print(f"{name:20} {rows:5}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
