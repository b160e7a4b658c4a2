"""The command ``pycuda-nn``: train, evaluate, predict."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pycuda_nn.backends import BACKENDS, pick
from pycuda_nn.backends.cuda_backend import CudaBackend
from pycuda_nn.cli.bench import bench
from pycuda_nn.cli.predictions import write_predictions
from pycuda_nn.cli.progress import shown
from pycuda_nn.cli.toml_settings import read_settings
from pycuda_nn.cuda.options import PRECISION_NAMES, CudaOptions, cuda_options
from pycuda_nn.data.dataset import TASKS, Dataset
from pycuda_nn.data.sources import TABLES, load_data, load_features, load_splits
from pycuda_nn.data.split import PARTS, check_fractions
from pycuda_nn.errors import CheckpointError, ConfigError, PycudaNNError
from pycuda_nn.model import Model
from pycuda_nn.model import evaluate as metrics_of
from pycuda_nn.training import checkpoint as files
from pycuda_nn.training.loop import TrainResult
from pycuda_nn.training.loop import train as run

FILE = click.Path(path_type=Path)


def _version() -> str:
    try:
        return importlib.metadata.version("starmint")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (not installed)"


def _fractions(context: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.BadParameter(f"'{text}' is not three numbers, e.g. 0.6,0.2,0.2") from error
    check_fractions(values)
    return values


def _print_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"pycuda-nn {_version()}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def cli() -> None:
    """Train fully connected networks.

    \b
    Examples:
      pycuda-nn train --data digits --set epochs=30 --checkpoint digits.npz
      pycuda-nn evaluate --checkpoint digits.npz
    """


@cli.command()
@click.option(
    "--data", "source", required=True, metavar="SOURCE",
    help="digits, or a .npz, .npy, .csv or .parquet file.",
)  # fmt: skip
@click.option("--labels", type=FILE, help="Labels of a .npy source, a .npy file.")
@click.option("--target", metavar="COLUMN", help="Label column of a table; default: the last.")
@click.option("--task", type=click.Choice(TASKS), default="auto", show_default=True)
@click.option(
    "--fractions", default="0.6,0.2,0.2", show_default=True, callback=_fractions,
    help="Shares of train, validation and test.",
)  # fmt: skip
@click.option("--split-seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)
@click.option("--config", "config_file", type=FILE, help="TOML file of settings.")
@click.option("--set", "words", multiple=True, metavar="KEY=VALUE", help="One setting; repeat it.")
@click.option("--checkpoint", type=FILE, help="Written after each epoch; also the trained model.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint if it is there.")
@click.option("--overwrite", is_flag=True, help="Start again though the checkpoint is there.")
@click.option(
    "--backend", default="auto", show_default=True, metavar="NAME",
    help=f"auto, {' or '.join(BACKENDS)}; auto takes the GPU if there is one.",
)  # fmt: skip
@click.option(
    "--precision", metavar="NAME",
    help=f"On the GPU: {', '.join(PRECISION_NAMES)}. Default: float32, the results of numpy; "
    "bf16 is the fastest.",
)  # fmt: skip
@click.option("--device", type=click.IntRange(0), metavar="N", help="GPU, from 0. Default: 0.")
@click.option(
    "--memory-limit", metavar="SIZE",
    help="GPU memory to use at most, e.g. 2GiB; rows that do not fit stay in host memory.",
)  # fmt: skip
@click.option(
    "--deterministic",
    is_flag=True,
    help="On the GPU: choose no algorithm by timing, for the same bits on every such GPU.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def train(
    source: str,
    labels: Path | None,
    target: str | None,
    task: str,
    fractions: tuple[float, ...],
    split_seed: int,
    config_file: Path | None,
    words: tuple[str, ...],
    checkpoint: Path | None,
    resume: bool,
    overwrite: bool,
    backend: str,
    precision: str | None,
    device: int | None,
    memory_limit: str | None,
    deterministic: bool,
    as_json: bool,
) -> None:
    """Train a network; show each epoch on standard error, the result on standard output.

    \b
    Examples:
      pycuda-nn train --data digits --set hidden=128,64 --set epochs=30 --checkpoint digits.npz
      pycuda-nn train --data table.csv --target price --task regress --config net.toml --json
      pycuda-nn train --data rows.npz --backend cuda --precision bf16 --device 1
    """
    cuda = cuda_options(precision, device, memory_limit, deterministic=deterministic)
    chosen = pick(backend, cuda)
    if cuda != CudaOptions() and chosen.name != "cuda":
        reason = CudaBackend.missing() or f"--backend is {backend}"
        raise ConfigError(f"--precision and the like are for a GPU: {reason}", "Drop them.")
    config = read_settings(config_file, words)
    _check_source(source, labels, target)
    _check_checkpoint(checkpoint, resume, overwrite)
    how = {"fractions": fractions, "seed": split_seed, "target": target, "task": task}
    parts = load_splits(source, labels, **how)  # type: ignore[arg-type]
    note = {"source": source, "labels": None if labels is None else str(labels), **how}
    with shown(config.epochs, sys.stderr) as show:
        result = run(
            config,
            parts.train,
            parts.valid,
            on_epoch=show,
            checkpoint=checkpoint,
            resume=resume,
            backend=chosen,
            note=note,
        )
    _print_result(result, checkpoint, chosen.name, as_json)


@cli.command()
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
        _check_source(source, labels, target)
        data = _other_data(model, source, labels, target or saved.note.get("target"))
    metrics = metrics_of(model, data)
    if as_json:
        click.echo(json.dumps({"data": data.name, "rows": len(data), **asdict(metrics)}))
    else:
        name = "RMSE" if model.classes is None else "error"
        click.echo(
            f"{data.name} ({len(data)} rows): loss {metrics.loss:.5f}  {name} {metrics.error:.5f}"
        )


@cli.command()
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
    width = model.network.sizes[0]
    x, _ = load_features(source, width=width, columns=model.columns)
    write_predictions(model, x, out, sys.stdout, probabilities=probabilities)
    if out is not None:
        click.echo(f"{len(x)} predictions in {out}", err=True)


cli.add_command(bench)


def _check_source(source: str, labels: Path | None, target: str | None) -> None:
    """Raise ConfigError for an option that this kind of source does not read."""
    kind = Path(source).suffix
    if target is not None and kind not in TABLES:
        raise ConfigError(f"--target: {source} is no table with columns", "Drop --target.")
    if labels is not None and kind != ".npy":
        raise ConfigError(f"--labels: {source} is no .npy file", "Drop --labels.")


def _check_checkpoint(path: Path | None, resume: bool, overwrite: bool) -> None:
    if path is None and (resume or overwrite):
        raise click.UsageError("--resume and --overwrite need --checkpoint FILE.")
    if resume and overwrite:
        raise click.UsageError("Give --resume or --overwrite, not both.")
    if path is not None and path.exists() and not (resume or overwrite):
        raise ConfigError(
            f"the checkpoint {path} exists",
            "Go on from it with --resume, or start again with --overwrite.",
        )
    if path is not None and not path.parent.is_dir():
        raise ConfigError(f"--checkpoint {path}: no folder {path.parent}", "Make it first.")


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


def _print_result(
    result: TrainResult, checkpoint: Path | None, backend: str, as_json: bool
) -> None:
    best, last = result.best, result.history[-1]
    if as_json:
        answer: dict[str, Any] = {
            "best": asdict(best),
            "last": asdict(last),
            "stopped_early": result.stopped_early,
            "seconds": sum(report.seconds for report in result.history),
            "backend": backend,
            "checkpoint": None if checkpoint is None else str(checkpoint),
        }
        click.echo(json.dumps(answer))
        return
    early = ", stopped early" if result.stopped_early else ""
    click.echo(f"Trained {last.epoch} epochs{early}; training loss {last.train_loss:.5f}")
    if best.valid_loss is not None:
        click.echo(
            f"Best epoch {best.epoch}: validation loss {best.valid_loss:.5f}, "
            f"error {best.valid_error:.5f}"
        )
    if checkpoint is not None:
        click.echo(f"Evaluate it with: pycuda-nn evaluate --checkpoint {checkpoint}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 1 failed, 2 wrong input, 130 Ctrl-C."""
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        code = cli.main(args=argv, prog_name="pycuda-nn", standalone_mode=False)
    except PycudaNNError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; with --checkpoint, go on with --resume.", err=True)
        return 130
    except OSError as error:  # of files: the others; a closed pipe ends the command in click
        click.echo(f"Error: {error.filename or 'standard output'}: {error.strerror}", err=True)
        return 1
    except MemoryError as error:
        click.echo(f"Error: not enough memory: {error}\nUse fewer rows at a time.", err=True)
        return 1
    return code if isinstance(code, int) else 0
