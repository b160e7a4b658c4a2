"""The command ``pycuda-nn train``."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pycuda_nn.backends import BACKENDS, load, pick
from pycuda_nn.cli.progress import shown
from pycuda_nn.cli.sources import FILE, check_source
from pycuda_nn.cli.toml_settings import read_settings
from pycuda_nn.cuda.options import PRECISION_NAMES, CudaOptions, cuda_options
from pycuda_nn.data.dataset import TASKS
from pycuda_nn.data.sources import load_splits
from pycuda_nn.data.split import check_fractions
from pycuda_nn.errors import ConfigError
from pycuda_nn.training.loop import TrainResult
from pycuda_nn.training.loop import train as run


def _fractions(context: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.BadParameter(f"'{text}' is not three numbers, e.g. 0.6,0.2,0.2") from error
    check_fractions(values)
    return values


@click.command()
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
    chosen = pick(backend, {"cuda": cuda})
    if cuda != CudaOptions() and chosen.name != "cuda":
        reason = load("cuda").missing() or f"--backend is {backend}"
        raise ConfigError(f"--precision and the like are for a GPU: {reason}", "Drop them.")
    config = read_settings(config_file, words)
    check_source(source, labels, target)
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
