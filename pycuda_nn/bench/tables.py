"""Reports of the benchmarks, and their tables."""

from __future__ import annotations

from dataclasses import dataclass

from pycuda_nn.bench.machine import Machine

MIB = 1 << 20
CALLS = 128 * 1000  # as in Netflix's table

# Seconds of 128 x 1000 calls, NVreg_CheckPCIConfigSpace = 1 and 0. Source: Netflix Technology Blog,
# "Distributed Neural Networks with GPUs in the AWS Cloud", February 2014.
NETFLIX_SECONDS_A_MILLION = 96.0  # GPU time for a million samples; same source
NETFLIX_2014 = (
    ("cg1.4xlarge", "own kernel", 3.37, 2.56),
    ("cg1.4xlarge", "NPP", 103.04, 6.17),
    ("g2.2xlarge", "own kernel", 2.01, 0.97),
    ("g2.2xlarge", "NPP", 299.23, 3.48),
)


@dataclass(frozen=True, kw_only=True)
class MulcRow:
    """Seconds of one call for vectors of ``size`` floats; None without NPP.

    Attributes:
        calls: Timed plain calls of our kernel; the other variants were timed equally long.
        mulc, npp_mulc: One operation.
        fused, npp_chain: Five operations, in one launch and in five calls.
        .._graph: The same, replayed from a CUDA graph.
    """

    size: int
    calls: int
    mulc: float
    npp_mulc: float | None
    mulc_graph: float
    npp_mulc_graph: float | None
    fused: float
    npp_chain: float | None
    fused_graph: float
    npp_chain_graph: float | None


@dataclass(frozen=True, kw_only=True)
class MulcReport:
    """Netflix's table today, and the machine; ``npp`` is the version of NPP."""

    machine: Machine
    npp: str | None
    rows: tuple[MulcRow, ...]


@dataclass(frozen=True, kw_only=True)
class TrainRow:
    """One workload in one precision.

    Attributes:
        rows: Training rows.
        us_a_step: Microseconds of a step: the median over the epochs after the first, including
            all work of an epoch.
        fastest, slowest: The fastest and the slowest epoch, in the same unit.
        epoch_s: Seconds of the median epoch.
        tflops: Operations of the matrix products, in 1e12 per second.
        setup_s: Seconds before the first epoch: copy of the rows, kernels, choice of algorithms.
        first_loss, last_loss: Mean training losses of the first and the last epoch.
        valid_error: Validation error after the last epoch.
    """

    workload: str
    precision: str
    rows: int
    us_a_step: float
    fastest: float
    slowest: float
    epoch_s: float
    tflops: float
    setup_s: float
    first_loss: float
    last_loss: float
    valid_error: float


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    """All workloads and precisions, and the machine."""

    machine: Machine
    rows: tuple[TrainRow, ...]


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """One kernel at one size, in 1e9 bytes per second, read and written.

    Attributes:
        array_bytes: Size of each array.
        in_place: Whether the output is the first input.
        copy_gb_s: Bandwidth of a device copy that reads and writes the same number of bytes.
    """

    operation: str
    array_bytes: int
    in_place: bool
    gb_s: float
    copy_gb_s: float


@dataclass(frozen=True, kw_only=True)
class KernelReport:
    """All kernels and sizes, and the machine."""

    machine: Machine
    rows: tuple[KernelRow, ...]


def mulc_table(report: MulcReport) -> str:
    """Return the measured columns and the columns of 2014."""
    columns = f"{'mulc':>9}{'NPP':>9}{'':>7}{'fused':>9}{'NPP':>9}{'':>7}"
    lines = [
        *report.machine.lines(),
        f"NPP {report.npp or 'is not installed (libnpps)'}",
        "",
        f"Seconds of {CALLS:,} calls of data[i] *= c, and of a chain of five operations",
        f"{'':>12}{'launched from Python':^50}{'replayed from a CUDA graph':^50}",
        f"{'floats':>12}{columns}{columns}",
    ]
    for row in report.rows:
        cells = (
            _beside(row.mulc, row.npp_mulc),
            _beside(row.fused, row.npp_chain),
            _beside(row.mulc_graph, row.npp_mulc_graph),
            _beside(row.fused_graph, row.npp_chain_graph),
        )
        lines.append(f"{row.size:>12,}{''.join(cells)}")
    lines += ["", "Netflix 2014: 128 x 1000 calls, with NVreg_CheckPCIConfigSpace = 1 and = 0"]
    lines += [f"{at:>12} {what:<11}{on:>9.2f}{off:>9.2f}" for at, what, on, off in NETFLIX_2014]
    return "\n".join(lines)


def _beside(own_s: float, npp_s: float | None) -> str:
    other = f"{'-':>9}{'':>7}" if npp_s is None else f"{npp_s * CALLS:>9.3f}{npp_s / own_s:>6.2f}x"
    return f"{own_s * CALLS:>9.3f}{other}"


def kernel_table(report: KernelReport) -> str:
    """Return the GB/s of each kernel and its share of the copy; each size has a column."""
    sizes = sorted({row.array_bytes for row in report.rows})
    lines = report.machine.lines()
    for in_place in (True, False):
        rows = [row for row in report.rows if row.in_place == in_place]
        lines += ["", f"GB/s and share of the copy, {'in place' if in_place else 'out of place'}"]
        lines.append(f"{'MiB an array':<14}" + "".join(f"{n // MIB:>14,}" for n in sizes))
        for name in dict.fromkeys(row.operation for row in rows):
            cells = {row.array_bytes: row for row in rows if row.operation == name}
            lines.append(f"{name:<14}" + "".join(_cell(cells[n]) for n in sizes))
    return "\n".join(lines)


def train_table(report: TrainReport) -> str:
    """Return the microseconds per step and seconds per epoch of each workload."""
    lines = [
        *report.machine.lines(),
        "",
        "Epochs of nn.train: all losses recorded, 8,192 rows evaluated after each epoch",
        f"{'workload':<14}{'precision':<10}{'us a step':>10}{'from':>9}{'to':>9}{'TFLOP/s':>9}"
        f"{'Mrows/s':>9}{'s an epoch':>12}{'loss':>8}{'':>3}{'error':>7}{'set-up s':>9}",
    ]
    for row in report.rows:
        lines.append(
            f"{row.workload:<14}{row.precision:<10}{row.us_a_step:>10.1f}{row.fastest:>9.1f}"
            f"{row.slowest:>9.1f}{row.tflops:>9.0f}{row.rows / row.epoch_s / 1e6:>9.1f}"
            f"{row.epoch_s:>12.3f}{row.first_loss:>8.3f}{row.last_loss:>10.3f}"
            f"{row.valid_error:>7.3f}{row.setup_s:>9.1f}"
        )
    million = next((row for row in report.rows if row.rows == 1_000_000), None)
    if million is not None:
        lines += [
            "",
            f"1,000,000 rows: {million.epoch_s:.3f} s an epoch; Netflix 2014, their network and "
            f"GPU: {NETFLIX_SECONDS_A_MILLION:.0f} s of GPU time",
        ]
    return "\n".join(lines)


def _cell(row: KernelRow) -> str:
    return f"{row.gb_s:>8,.0f}{row.gb_s / row.copy_gb_s:>6.0%}"
