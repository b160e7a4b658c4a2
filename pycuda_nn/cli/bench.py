"""The commands ``pycuda-nn bench ...``; importing this needs no GPU."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pycuda_nn.backends import load
from pycuda_nn.bench.tables import kernel_table, mulc_table, train_table
from pycuda_nn.bench.workloads import WORKLOADS
from pycuda_nn.cuda.options import PRECISION_NAMES, cuda_options
from pycuda_nn.errors import BackendUnavailable, did_you_mean

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Device

_ON_DEVICE = click.option(
    "--device", "ordinal", type=click.IntRange(0), default=0, show_default=True, metavar="N",
    help="GPU of those in CUDA_VISIBLE_DEVICES.",
)  # fmt: skip
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _sizes(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(float(word)) for word in text.split(","))
    except (ValueError, OverflowError):
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise click.BadParameter(f"'{text}' is not a list of sizes, e.g. 1000,1e6")
    return sizes


@click.group()
def bench() -> None:
    """Measure this machine's GPU with the kernels of this package.

    \b
    Examples:
      pycuda-nn bench mulc
      pycuda-nn bench train --precision bf16
    """


@bench.command()
@click.option(
    "--sizes", callback=_sizes, default="1e3,1e4,1e5,1e6,1e7,1e8", show_default=True,
    metavar="N,N,...", help="Vector sizes, in floats.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(0.01), default=1.0, show_default=True,
    help="About how long one variant of one size is timed, at most.",
)  # fmt: skip
@_ON_DEVICE
@_AS_JSON
def mulc(sizes: tuple[int, ...], seconds: float, ordinal: int, as_json: bool) -> None:
    """Time data[i] *= c against NPP, as Netflix did in 2014, and a fused chain of five operations.

    \b
    Examples:
      pycuda-nn bench mulc
      pycuda-nn bench mulc --sizes 1e6,1e8 --seconds 0.5 --json
    """
    with _active(ordinal) as device:
        from pycuda_nn.bench.mulc import measure

        report = measure(device, sizes, seconds, _say)
    click.echo(json.dumps(asdict(report)) if as_json else mulc_table(report))


@bench.command()
@click.option(
    "--sizes", callback=_sizes, default="1,4,16,64,256,1024", show_default=True, metavar="N,N,...",
    help="Sizes of one array, in MiB.",
)  # fmt: skip
@click.option("--operation", "names", multiple=True, metavar="NAME", help="Only this; repeat it.")
@_ON_DEVICE
@_AS_JSON
def kernels(sizes: tuple[int, ...], names: tuple[str, ...], ordinal: int, as_json: bool) -> None:
    """Time every elementwise kernel against a copy on the device of as many bytes.

    \b
    Examples:
      pycuda-nn bench kernels
      pycuda-nn bench kernels --sizes 64,1024 --operation exp --operation sigmoid
    """
    from pycuda_nn.cuda.elementwise.expression import SINGLE

    unknown = [name for name in names if name not in SINGLE]
    if unknown:
        raise click.BadParameter(
            f"'{unknown[0]}'. {did_you_mean(unknown[0], SINGLE)}", param_hint="--operation"
        )
    with _active(ordinal) as device:
        from pycuda_nn.bench.kernels import measure

        report = measure(device, sizes, names or tuple(SINGLE), _say)
    click.echo(json.dumps(asdict(report)) if as_json else kernel_table(report))


@bench.command()
@click.option("--workload", "names", multiple=True, metavar="NAME", help="Only this; repeat it.")
@click.option(
    "--precision", "precisions", multiple=True, type=click.Choice(PRECISION_NAMES),
    default=("bf16", "fp16", "tf32"), show_default=True, help="Repeat it for several.",
)  # fmt: skip
@click.option("--epochs", type=click.IntRange(1), default=5, show_default=True)
@click.option("--memory-limit", metavar="SIZE", help="GPU memory to use at most, e.g. 2GiB.")
@_ON_DEVICE
@_AS_JSON
def train(
    names: tuple[str, ...],
    precisions: tuple[str, ...],
    epochs: int,
    memory_limit: str | None,
    ordinal: int,
    as_json: bool,
) -> None:
    """Time epochs of the trainer on networks from small to wide.

    \b
    Examples:
      pycuda-nn bench train
      pycuda-nn bench train --workload netflix-1m --precision bf16 --json
    """
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise click.BadParameter(
            f"'{unknown[0]}'. {did_you_mean(unknown[0], WORKLOADS)}", param_hint="--workload"
        )
    chosen = [WORKLOADS[name] for name in names or WORKLOADS]
    options = [
        cuda_options(precision, ordinal, memory_limit, deterministic=False)
        for precision in precisions
    ]
    with _active(ordinal) as device:
        from pycuda_nn.bench.machine import describe

        machine = describe(device)
    from pycuda_nn.bench.train import measure

    report = measure(machine, chosen, options, epochs, _say)
    click.echo(json.dumps(asdict(report)) if as_json else train_table(report))


@contextlib.contextmanager
def _active(ordinal: int) -> Iterator[Device]:
    """Make the context of GPU ``ordinal`` current.

    Raises:
        BackendUnavailable: There is no GPU, or a package is not installed.
    """
    reason = load("cuda").missing()
    if reason is not None:
        raise BackendUnavailable(f"bench needs a GPU: {reason}")
    from pycuda_nn.cuda.runtime.device import Device

    device = Device(ordinal)
    with device.active():
        yield device


def _say(line: str) -> None:
    click.echo(line, err=True)
