"""The tables of a scaling report as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pycuda_nn.bench.machine import Machine
from pycuda_nn.bench.scaling.report import NCCL, OWN, TORCH, ScalingReport, ScalingRow

_TITLES = {
    "weak": "Weak scaling: microseconds a step with a fixed minibatch for each GPU, and efficiency",
    "strong": "Strong scaling: microseconds a step with a fixed minibatch in all, and speed-up",
}
_Cells = Mapping[str, ScalingRow]


def scaling_table(report: ScalingReport) -> str:
    """Return the machine, a table for weak and one for strong scaling, and what was slower."""
    lines = _machine_lines(report)
    for scaling, title in _TITLES.items():
        groups = _groups([row for row in report.rows if row.scaling == scaling])
        lines += ["", title, *_header()]
        lines += [_line(cells, scaling) for cells in groups]
    lines += ["", *_lost(report.rows), *_errors(report.rows), *report.notes]
    return "\n".join(lines).rstrip()


def _machine_lines(report: ScalingReport) -> list[str]:
    found = report.machine
    lines = []
    if "machine" in found:
        machine = Machine(**found["machine"])
        lines.append(f"{report.gpus} x {machine.lines()[0]}")
    reach = {"True": "yes", "False": "no"}.get(str(found.get("peer_access")), "unknown")
    versions = [f"memory access between GPUs: {reach}", f"NCCL {_or_unknown(found, 'nccl')}"]
    if "torch" in found:
        versions.append(f"torch {found['torch']} with NCCL {_or_unknown(found, 'torch_nccl')}")
    return [
        *lines,
        "; ".join(versions),
        f"{report.precision}, SGD with momentum; NVLink multicast is off for all "
        "(NCCL_NVLS_ENABLE=0)",
    ]


def _or_unknown(found: Mapping[str, Any], key: str) -> str:
    return str(found.get(key) or "(version unknown)")


def _header() -> list[str]:
    columns = f"{'us':>9}{'':>7}"
    return [
        f"{'':<40}{OWN:>16}{'with NCCL':>16}{'':>7}{'torch DDP':>16}{'':>7}",
        f"{'network':<24}{'a GPU':>9}{'GPUs':>7}{columns}{columns}{'times':>7}{columns}{'times':>7}"
        "  best way of torch",
    ]


def _groups(rows: Sequence[ScalingRow]) -> list[dict[str, ScalingRow]]:
    """Return the rows by engine, for each network, minibatch and number of GPUs."""
    groups: dict[Any, dict[str, ScalingRow]] = {}
    for row in rows:
        groups.setdefault((row.network, row.batch, row.gpus), {})[row.engine] = row
    return list(groups.values())


def _line(cells: _Cells, scaling: str) -> str:
    row = next(iter(cells.values()))
    line = f"{row.network:<24}{row.batch_a_gpu:>9,}{row.gpus:>7}"
    line += _time(cells.get(OWN), scaling)
    for engine in (NCCL, TORCH):
        line += _time(cells.get(engine), scaling) + _times(cells, engine)
    torch = cells.get(TORCH)
    if torch is None or torch.us_a_step is None:
        return line.rstrip()
    return f"{line}  {torch.variant}"


def _time(row: ScalingRow | None, scaling: str) -> str:
    if row is None or row.us_a_step is None:
        return f"{'-' if row is None else 'failed':>9}{'':>7}"
    gain = ""
    if row.efficiency is not None and row.speed_up is not None:
        gain = f"{row.efficiency:.1%}" if scaling == "weak" else f"{row.speed_up:.2f}x"
    return f"{row.us_a_step:>9.1f}{gain:>7}"


def _times(cells: _Cells, engine: str) -> str:
    """Return how many times as long as pycuda_nn a step of ``engine`` takes."""
    times = ratio(cells, engine)
    return f"{'' if times is None else f'{times:.2f}':>7}"


def ratio(cells: _Cells, engine: str) -> float | None:
    """Return the time of ``engine`` divided by that of pycuda_nn, or None."""
    own, other = cells.get(OWN), cells.get(engine)
    if own is None or other is None or own.us_a_step is None or other.us_a_step is None:
        return None
    return other.us_a_step / own.us_a_step


def _lost(rows: Sequence[ScalingRow]) -> list[str]:
    """Name the rows in which another engine is faster."""
    lines, compared = [], 0
    for cells in (group for kind in _TITLES for group in _groups(_of(rows, kind))):
        for engine in (NCCL, TORCH):
            times = ratio(cells, engine)
            compared += times is not None
            if times is not None and times < 1:
                name = _name(cells[engine])
                lines.append(f"  {engine} takes {times:.2f} of its time: {name}")
    if not compared:
        return []
    return [f"pycuda_nn is slower in {len(lines)} of {compared} comparisons", *lines]


def _of(rows: Sequence[ScalingRow], scaling: str) -> list[ScalingRow]:
    return [row for row in rows if row.scaling == scaling]


def _errors(rows: Sequence[ScalingRow]) -> list[str]:
    """Return a line for each engine and error, with its rows."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.error:
            found.setdefault((row.engine, row.error), []).append(_name(row))
    lines = []
    for (engine, error), names in found.items():
        where = names[0] if len(names) == 1 else f"{len(names)} rows"
        lines.append(f"{engine} failed, {where}: {error}")
    return lines


def _name(row: ScalingRow) -> str:
    gpus = "1 GPU" if row.gpus == 1 else f"{row.gpus} GPUs"
    return f"{row.scaling}, {row.network}, minibatch {row.batch:,}, {gpus}"
