"""The command ``pycuda-nn bench scaling``; it and its children need no GPU to be imported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import cloup

from pycuda_nn.backends import load
from pycuda_nn.bench.scaling import (
    NETWORKS,
    QUICK,
    ScalingReport,
    Settings,
    counts_up_to,
    measure,
    scaling_table,
)
from pycuda_nn.bench.scaling.plot import check_matplotlib, write_plot
from pycuda_nn.bench.scaling.report import NCCL, OWN, TORCH
from pycuda_nn.cli.options import FILE, JSON, HelpOption
from pycuda_nn.cuda.options import PRECISION_NAMES
from pycuda_nn.cuda.runtime.driver import count_gpus
from pycuda_nn.errors import BackendUnavailable, DeviceError, did_you_mean

_ENGINES: Mapping[str, str] = {"pycuda_nn": OWN, "nccl": NCCL, "torch": TORCH}


def _networks(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    for name in names:
        if name not in NETWORKS:
            raise click.BadParameter(f"'{name}'. {did_you_mean(name, NETWORKS)}")
    return names


def _counts(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...]:
    try:
        counts = {int(word) for word in text.split(",")} if text else set()
    except ValueError:
        counts = {0}
    if counts and (min(counts) < 1 or max(counts) < 2):
        raise click.BadParameter(f"invalid numbers of GPUs '{text}': expected e.g. 2 or 2,4")
    return tuple(sorted({1, *counts})) if counts else ()


@cloup.command()
@cloup.option(
    "--gpus", "counts", cls=HelpOption, callback=_counts, metavar="N,N,...",
    help="Time on these numbers of GPUs, in addition to 1. Default: 2, 4, 8, ... and all.",
)  # fmt: skip
@cloup.option(
    "--networks", "names", cls=HelpOption, callback=_networks, metavar="NAME,...",
    help=f"Time only these networks: {', '.join(NETWORKS)}. Default: all; with --quick "
    f"{', '.join(QUICK)}.",
)  # fmt: skip
@cloup.option(
    "--engine", "engines", cls=HelpOption, multiple=True, type=click.Choice(list(_ENGINES)),
    default=tuple(_ENGINES),
    help="Time pycuda_nn with its own exchange (pycuda_nn), with NCCL (nccl), or torch DDP "
    "(torch). Repeatable. Default: all that are installed.",
)  # fmt: skip
@cloup.option(
    "--precision", cls=HelpOption, type=click.Choice(PRECISION_NAMES), default="bf16",
    help="Compute in this precision. Default: bf16.",
)  # fmt: skip
@cloup.option("--quick", is_flag=True, help="Finish within about three minutes on two GPUs.")
@cloup.option(
    "--plot", cls=HelpOption, type=FILE, metavar="FILE.svg",
    help="Write a plot of the rows per second to this file. Default: no plot.",
)  # fmt: skip
@JSON
def scaling(
    counts: tuple[int, ...],
    names: tuple[str, ...],
    engines: tuple[str, ...],
    precision: str,
    quick: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Time one training on 1, 2, ... GPUs, next to NCCL and torch DDP.

    Weak scaling fixes the minibatch of a GPU, strong scaling that of the training. pycuda_nn trains
    whole epochs; torch repeats a step, in several ways, of which the fastest counts. Rows in which
    pycuda_nn is slower are listed.

    \b
    Examples:
      pycuda-nn bench scaling --quick
      pycuda-nn bench scaling --gpus 2,4 --networks netflix-b1024 --plot scaling.svg
    """
    counts = _checked(counts)
    if plot is not None:
        check_matplotlib()
    settings = Settings(
        networks=names or (QUICK if quick else tuple(NETWORKS)),
        counts=counts,
        engines=tuple(_ENGINES[name] for name in engines),
        precision=precision,
        quick=quick,
    )
    report = measure(settings, lambda line: click.echo(line, err=True))
    click.echo(json.dumps(_plain(report)) if as_json else scaling_table(report))
    if plot is not None:
        write_plot(plot, report)
    if all(row.us_a_step is None for row in report.rows):
        raise DeviceError("no training was timed", "See the errors above.")


def _checked(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of GPUs; raise an error if the machine has fewer."""
    gpus, needed = count_gpus(), max((2, *counts))
    if gpus < needed:
        raise DeviceError(
            f"bench scaling needs {needed} GPUs, but this machine has {gpus}",
            "Run it on a host with more GPUs; check CUDA_VISIBLE_DEVICES.",
        )
    reason = load("cuda").missing()
    if reason is not None:
        raise BackendUnavailable(f"bench needs a GPU: {reason}")
    return counts or counts_up_to(gpus)


def _plain(report: ScalingReport) -> dict[str, Any]:
    return {**asdict(report), "machine": dict(report.machine)}
