"""The command ``pycuda-nn train``."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import cloup

from pycuda_nn.cli.gpu_options import GPU_OPTIONS, chosen_backend, cuda_of
from pycuda_nn.cli.large_batch import LARGE_BATCH_OPTIONS, large_batch_words
from pycuda_nn.cli.options import (
    FILE,
    JSON,
    LABELS,
    TABLE_OPTIONS,
    HelpOption,
    check_source,
    table_options,
)
from pycuda_nn.cli.progress import shown, train_rmse
from pycuda_nn.cli.toml_settings import defaults_for, read_settings, settings_of
from pycuda_nn.config import TrainConfig
from pycuda_nn.data.arrays import TASKS
from pycuda_nn.data.dataset import task_line
from pycuda_nn.data.sources import load_splits
from pycuda_nn.data.split import Splits, check_fractions
from pycuda_nn.data.table import TableOptions
from pycuda_nn.errors import ConfigError
from pycuda_nn.training.loop import TrainResult
from pycuda_nn.training.loop import train as run


def _fractions(context: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.BadParameter(
            f"invalid fractions '{text}': expected three numbers, e.g. 0.6,0.2,0.2"
        ) from error
    check_fractions(values)
    return values


@cloup.command()
@cloup.option_group(
    "Common options",
    cloup.option(
        "--data", "source", cls=HelpOption, required=True, metavar="SOURCE",
        help="Train on this source: digits, or a .npz, .npy, .csv, .csv.gz, .tsv or .parquet file. "
        "Required.",
    ),
    cloup.option(
        "--target", cls=HelpOption, metavar="COLUMN",
        help="Take the labels from this column of a table, by name or number. Default: the last.",
    ),
    cloup.option(
        "--set", "words", cls=HelpOption, multiple=True, metavar="KEY=VALUE",
        help="Change one setting, e.g. epochs=30; overrides --config. Repeatable.",
    ),
    cloup.option(
        "--checkpoint", cls=HelpOption, type=FILE, metavar="FILE",
        help="Save the training to this file after each epoch; evaluate and predict read it. "
        "Default: save nothing.",
    ),
    cloup.option(
        "--resume", is_flag=True, help="Continue from the checkpoint if the file exists."
    ),
)  # fmt: skip
@cloup.option_group(
    "Data",
    LABELS,
    cloup.option(
        "--task", cls=HelpOption, type=click.Choice(TASKS), default="auto",
        help="Predict classes (classify) or numbers (regress); auto regresses if the labels are "
        "real numbers or, in a table, many whole numbers. Default: auto.",
    ),
    cloup.option(
        "--fractions", cls=HelpOption, default="0.6,0.2,0.2", callback=_fractions,
        metavar="F,F,F",
        help="Split the rows into train, valid and test parts by these shares. "
        "Default: 0.6,0.2,0.2.",
    ),
    cloup.option(
        "--split-seed", cls=HelpOption, type=click.IntRange(0, 2**63 - 1), default=0, metavar="N",
        help="Seed the random split with this number. Default: 0.",
    ),
)  # fmt: skip
@TABLE_OPTIONS
@cloup.option_group(
    "Settings and checkpoint",
    cloup.option(
        "--config", "config_file", cls=HelpOption, type=FILE, metavar="FILE",
        help="Read settings from this TOML file. Default: no file.",
    ),
    cloup.option(
        "--overwrite", is_flag=True, help="Start from epoch 1 and replace an existing checkpoint."
    ),
)  # fmt: skip
@LARGE_BATCH_OPTIONS
@GPU_OPTIONS
@JSON
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
    scale_batch: int | None,
    scale_rule: str | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Train a network.

    Prints each epoch on standard error and the result on standard output. A table is trained with
    settings that fit its size, which are printed; --set overrides them. The targets of a regression
    are scaled; RMSE and predictions are in their unit.

    \b
    Examples:
      pycuda-nn train --data digits --set hidden=128,64 --set epochs=30 --checkpoint digits.npz
      pycuda-nn train --data rows.npz --set optimizer=sgd --set lr=0.02 --scale-batch 4
      pycuda-nn train --data houses.csv --target price --drop id --checkpoint houses.npz
      pycuda-nn train --data rows.npz --backend cuda --precision bf16 --device 1
      pycuda-nn train --data rows.npz --precision bf16 --gpus all --set batch_size=8192
    """
    cuda = cuda_of(more)
    chosen = chosen_backend(more["backend"], cuda)
    words += tuple(large_batch_words(scale_batch, scale_rule))
    config, given = read_settings(config_file, words)
    check_source(source, labels, target)
    options = table_options(source, more)
    _check_checkpoint(checkpoint, resume, overwrite)
    how = {"fractions": fractions, "seed": split_seed, "target": target, "task": task}
    parts, note = _loaded(source, labels, options, how)
    old = checkpoint if resume and checkpoint is not None and checkpoint.exists() else None
    config = _with_defaults(config, parts, given, old)
    targets = 0 if parts.train.classes is not None else parts.train.y.shape[1]
    rows = len(parts.train) if cuda.gpus != 1 or cuda.hosts != 1 else 0
    with shown(config.epochs, sys.stderr, targets, rows) as show:
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
    saved = checkpoint if chosen.saves else None
    _print_result(result, saved, chosen.name, targets, as_json)


def _loaded(
    source: str, labels: Path | None, options: TableOptions | None, how: dict[str, Any]
) -> tuple[Splits, dict[str, Any]]:
    """Return the splits and their note in a checkpoint, and print what the data are."""
    parts = load_splits(source, labels, table=options, **how)
    encoding = parts.train.encoding
    if encoding is not None and encoding.summary():
        click.echo(encoding.summary(), err=True)
    click.echo(task_line(parts.train), err=True)
    note = {"source": source, "labels": None if labels is None else str(labels), **how}
    return parts, note if options is None else {**note, "table": options.as_dict()}


def _with_defaults(
    config: TrainConfig, parts: Splits, given: set[str], old: Path | None
) -> TrainConfig:
    if old is not None and parts.train.encoding is not None:
        return replace(config, **settings_of(old, given))
    values = defaults_for(config, parts, given)
    if values.keys() - {"scale_targets"}:
        words = ", ".join(f"{key} = {_shown(value)}" for key, value in values.items())
        click.echo(f"settings for this table: {words}", err=True)
    return replace(config, **values)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _check_checkpoint(path: Path | None, resume: bool, overwrite: bool) -> None:
    if path is None and (resume or overwrite):
        raise click.UsageError("--resume and --overwrite need --checkpoint FILE.")
    if resume and overwrite:
        raise click.UsageError("--resume and --overwrite exclude each other.")
    if path is not None and path.exists() and not path.is_file():
        raise ConfigError(f"--checkpoint {path} is not a file", "Name a file for the checkpoint.")
    if path is not None and path.exists() and not (resume or overwrite):
        raise ConfigError(
            f"checkpoint {path} already exists",
            "Continue from it with --resume, or replace it with --overwrite.",
        )
    if path is not None and not path.parent.is_dir():
        raise ConfigError(
            f"--checkpoint {path}: no such directory: {path.parent}",
            f"Create it: mkdir -p {shlex.quote(str(path.parent))}",
        )


def _print_result(
    result: TrainResult, checkpoint: Path | None, backend: str, targets: int, as_json: bool
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
    loss = f"loss {last.train_loss:.5f}"
    if targets:
        loss = f"RMSE {train_rmse(last, targets):.5g}"
    click.echo(f"Trained {last.epoch} epochs{early}; training {loss}")
    if best.valid_loss is not None and targets:
        click.echo(f"Best epoch {best.epoch}: validation RMSE {best.valid_error:.5g}")
    elif best.valid_loss is not None:
        click.echo(
            f"Best epoch {best.epoch}: validation loss {best.valid_loss:.5f}, "
            f"error {best.valid_error:.5f}"
        )
    if checkpoint is not None:
        click.echo(f"Evaluate it with: pycuda-nn evaluate --checkpoint {checkpoint}")
