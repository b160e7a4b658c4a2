"""The commands ``pycuda-nn bench ...``; importing this module does not need a GPU."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
import cloup

from pycuda_nn.backends import load
from pycuda_nn.bench.networks import find
from pycuda_nn.bench.tables import kernel_table, mulc_table, train_table
from pycuda_nn.bench.workloads import OTHERS, WORKLOADS
from pycuda_nn.cli.bench_scaling import scaling
from pycuda_nn.cli.options import JSON, HelpOption
from pycuda_nn.cuda.options import PRECISION_NAMES, cuda_options
from pycuda_nn.errors import BackendUnavailable, did_you_mean

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Device

_ON_DEVICE = cloup.option(
    "--device", "ordinal", cls=HelpOption, type=click.IntRange(0), default=0, metavar="N",
    help="Use this GPU, counted from 0 in CUDA_VISIBLE_DEVICES. Default: 0.",
)  # fmt: skip


def _sizes(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(float(word)) for word in text.split(","))
    except (ValueError, OverflowError):
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise click.BadParameter(
            f"invalid sizes '{text}': expected numbers of at least 1, e.g. 1000,1e6"
        )
    return sizes


@cloup.group()
def bench() -> None:
    """Benchmark the GPU of this machine.

    \b
    Examples:
      pycuda-nn bench mulc
      pycuda-nn bench train --precision bf16
    """


bench.add_command(scaling)


@bench.command()
@cloup.option(
    "--sizes", cls=HelpOption, callback=_sizes, default="1e3,1e4,1e5,1e6,1e7,1e8",
    metavar="N,N,...",
    help="Time vectors of these sizes, in floats. Default: 1e3,1e4,1e5,1e6,1e7,1e8.",
)  # fmt: skip
@cloup.option(
    "--seconds", cls=HelpOption, type=click.FloatRange(0.01), default=1.0, metavar="S",
    help="Time each variant of each size for about this many seconds at most. Default: 1.",
)  # fmt: skip
@_ON_DEVICE
@JSON
def mulc(sizes: tuple[int, ...], seconds: float, ordinal: int, as_json: bool) -> None:
    """Time data[i] *= c and a fused chain against NPP.

    Netflix published the times of data[i] *= c in 2014. The chain has five operations.

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
@cloup.option(
    "--sizes", cls=HelpOption, callback=_sizes, default="1,4,16,64,256,1024", metavar="N,N,...",
    help="Time arrays of these sizes, in MiB. Default: 1,4,16,64,256,1024.",
)  # fmt: skip
@cloup.option(
    "--operation", "names", cls=HelpOption, multiple=True, metavar="NAME",
    help="Time only this operation, e.g. exp. Repeatable. Default: all.",
)  # fmt: skip
@_ON_DEVICE
@JSON
def kernels(sizes: tuple[int, ...], names: tuple[str, ...], ordinal: int, as_json: bool) -> None:
    """Time each elementwise kernel against a copy.

    The copy moves the same number of bytes within the memory of the GPU.

    \b
    Examples:
      pycuda-nn bench kernels
      pycuda-nn bench kernels --sizes 64,1024 --operation exp --operation sigmoid
    """
    from pycuda_nn.cuda.elementwise.single import SINGLE

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
@cloup.option(
    "--workload", "names", cls=HelpOption, multiple=True, metavar="NAME",
    help=f"Time only this workload: {', '.join(WORKLOADS)}. Repeatable. Default: all of them. "
    f"Also: {', '.join(OTHERS)}, and any network, such as 784-300-10,b=64,adam,dropout=.5.",
)  # fmt: skip
@cloup.option(
    "--precision", "precisions", cls=HelpOption, multiple=True,
    type=click.Choice(PRECISION_NAMES), default=("bf16", "fp16", "tf32"),
    help="Compute in this precision. Repeatable. Default: bf16, fp16 and tf32.",
)  # fmt: skip
@cloup.option(
    "--epochs", cls=HelpOption, type=click.IntRange(1), default=5, metavar="N",
    help="Train for this many epochs. Default: 5.",
)  # fmt: skip
@cloup.option(
    "--memory-limit", cls=HelpOption, metavar="SIZE",
    help="Use at most this much GPU memory, e.g. 2GiB. Default: all free memory.",
)  # fmt: skip
@_ON_DEVICE
@JSON
def train(
    names: tuple[str, ...],
    precisions: tuple[str, ...],
    epochs: int,
    memory_limit: str | None,
    ordinal: int,
    as_json: bool,
) -> None:
    """Time training epochs of networks from small to wide.

    \b
    Examples:
      pycuda-nn bench train
      pycuda-nn bench train --workload netflix-1m --precision bf16 --json
      pycuda-nn bench train --workload 20-64-64-1,b=32,squared,adam --precision float32
    """
    try:
        chosen = [find(name) for name in names or WORKLOADS]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--workload") from None
    options = [
        cuda_options(precision=precision, device=ordinal, memory_limit=memory_limit)
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
    """Make the CUDA context of GPU ``ordinal`` current.

    Raises:
        BackendUnavailable: The machine has no GPU, or a package is not installed.
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
